/** The colour of the settings for the whole page; tokens.css derives shades of it that contrast enough. */
export function showColour(colour: string): void {
  const root = document.documentElement;
  root.toggleAttribute("data-colour", colour !== "");
  root.style.setProperty("--page-colour", colour);
}
