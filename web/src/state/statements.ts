/**
 * Sentences of the service in the language of the page: in English the service has written them, in Korean they come
 * from its table by their code (`GET /statements/ko`), which is fetched when a session begins or the language changes.
 */
import { signal } from "@preact/signals";
import { api } from "../api/client";
import type { Problem, Statement } from "../api/problem";
import { filled } from "../text/fill";
import { language, languageOf } from "../text/language";
import type { Language } from "../text/tags";

export type { Statement };

/** The texts by code; null until they have come. */
export const korean = signal<Readonly<Record<string, string>> | null>(null);
let fetching: Promise<void> | null = null;

/** Fetches the Korean texts if the page is in Korean and does not have them; without them the text is English. */
export async function readKorean(): Promise<void> {
  if (language.value !== "ko" || korean.value !== null) return;
  fetching ??= api.get("/statements/{language}", { path: { language: "ko" } }).then(
    (table) => {
      korean.value = table;
    },
    () => {
      fetching = null; // the next sentence asks again
    },
  );
  await fetching;
}

/** A statement in the language of the page, with the language that it is in. */
export function sayStatement({ code, text, values }: Statement): { text: string; lang: Language } {
  if (language.value !== "ko" || !code) return { text, lang: languageOf(text) };
  const template = korean.value?.[code];
  void readKorean();
  if (template === undefined) return { text, lang: languageOf(text) };
  return { text: filled(template, values, "ko"), lang: "ko" };
}

/** Sentences of the service as one text; without statements the text as it is. */
export function sayAll(statements: readonly Statement[], text: string): { text: string; lang: Language } {
  if (statements.length === 0) return { text, lang: languageOf(text) };
  const said = statements.map(sayStatement);
  return { text: said.map((each) => each.text).join(" "), lang: said[0]?.lang ?? languageOf(text) };
}

/** What the service says about a problem; "" when it could not be reached. */
export const sayProblem = ({ statements, detail }: Problem) => sayAll(statements, detail);
