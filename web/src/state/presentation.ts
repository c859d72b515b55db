/** The name and colour of the service by its settings, which are in the document that it sends. */
import { languageOf } from "../text/language";

/** `dtrag` where the settings have none. */
export const NAME = document.title;
export const NAME_LANGUAGE = languageOf(NAME);

/** The colour for the whole page; tokens.css derives shades of it that contrast enough. */
export function showColour(): void {
  const colour = document.querySelector<HTMLMetaElement>("meta[name=theme-color]")?.content;
  if (!colour) return;
  document.documentElement.dataset.colour = "";
  document.documentElement.style.setProperty("--page-colour", colour);
}
