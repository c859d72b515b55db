/** Languages without the state of the page: the widget for other sites uses these, too. */
export type Language = "en" | "ko";

/** The `lang` of a text from outside: Korean where it has Hangul. Screen readers choose the voice by it. */
export function languageOf(text: string): Language {
  return /[\uac00-\ud7a3]/.test(text) ? "ko" : "en";
}

/** The first of the browser's languages that the page has; English otherwise. */
export function preferredLanguage(accepted: readonly string[]): Language {
  for (const tag of accepted) {
    const primary = tag.toLowerCase().split("-")[0];
    if (primary === "ko" || primary === "en") return primary;
  }
  return "en";
}
