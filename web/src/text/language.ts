import { signal } from "@preact/signals";
import type { Language } from "./tags";

export { languageOf, preferredLanguage, type Language } from "./tags";

/** The language of the page. Reading it in a component renders the component again when it changes. */
export const language = signal<Language>("en");
