/**
 * Sentences of the service in the language of the page: in English the service has written them, in Korean they come
 * from its table by their code (`GET /statements/ko`), which is fetched when the first sentence is shown.
 */
import { signal } from "@preact/signals";
import { api } from "../api/client";
import type { Problem, Statement } from "../api/problem";
import { filled } from "./fill";
import { language, languageOf } from "./language";
import type { Language } from "./tags";

export type { Statement };

/** The texts by code; null until they have come. */
export const korean = signal<Readonly<Record<string, string>> | null>(null);
let fetching = false;

function fetchKorean(): void {
  if (fetching) return;
  fetching = true;
  api.get("/statements/{language}", { path: { language: "ko" } }).then(
    (table) => (korean.value = table),
    () => (fetching = false), // shown in English; the next sentence asks again
  );
}

/** A statement in the language of the page, with the language that it is in. */
export function sayStatement({ code, text, values }: Statement): { text: string; lang: Language } {
  if (language.value !== "ko" || !code) return { text, lang: languageOf(text) };
  const template = korean.value?.[code];
  if (korean.value === null) fetchKorean();
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
