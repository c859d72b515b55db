import { signal } from "@preact/signals";

export type Language = "en" | "ko";

/** The language of the page. Reading it in a component renders the component again when it changes. */
export const language = signal<Language>("en");

/** The first of the browser's languages that the page has; English otherwise. */
export function preferredLanguage(accepted: readonly string[]): Language {
  for (const tag of accepted) {
    const primary = tag.toLowerCase().split("-")[0];
    if (primary === "ko" || primary === "en") return primary;
  }
  return "en";
}
