/** What the reader chose for this browser: language, theme, shortcuts, no guide. Preferences locally and shared between tabs. */
import { effect, signal } from "@preact/signals";
import { language, preferredLanguage, type Language } from "../text/language";
import { onTabMessage, tellTabs, type Preferences, type Theme } from "./tabs";

export const THEMES: readonly Theme[] = ["system", "light", "dark"];
const KEY = "dtrag.preferences";

export const theme = signal<Theme>("system");
export const shortcutsOn = signal(true);
export const guideAway = signal(false);

function read(): Preferences {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {}; // storage is switched off or holds something else: the defaults
  }
}

function write(change: Preferences): void {
  try {
    localStorage.setItem(KEY, JSON.stringify({ ...read(), ...change }));
  } catch {
    // Storage is switched off: the choice holds until the page is closed.
  }
  // With the choice itself: another tab may see the message before it sees what is stored.
  tellTabs({ kind: "preferences", change });
}

function apply(stored: Preferences): void {
  if (stored.language) language.value = stored.language;
  if (stored.theme && THEMES.includes(stored.theme)) theme.value = stored.theme;
  if (stored.shortcuts !== undefined) shortcutsOn.value = stored.shortcuts;
  if (stored.guideAway) guideAway.value = true;
}

/** Read the stored choices and keep `lang` and the theme of the page in step with them. */
export function startPreferences(): void {
  language.value = preferredLanguage(navigator.languages);
  apply(read());
  onTabMessage((message) => message.kind === "preferences" && apply(message.change));
  effect(() => {
    document.documentElement.lang = language.value;
  });
  effect(() => {
    const root = document.documentElement;
    if (theme.value === "system") delete root.dataset.theme;
    else root.dataset.theme = theme.value;
  });
}

export function chooseLanguage(choice: Language): void {
  language.value = choice;
  write({ language: choice });
}

export function chooseTheme(choice: Theme): void {
  theme.value = choice;
  write({ theme: choice });
}

export function chooseShortcuts(on: boolean): void {
  shortcutsOn.value = on;
  write({ shortcuts: on });
}

export function putGuideAway(): void {
  guideAway.value = true;
  write({ guideAway: true });
}
