/** What the reader chose for this browser: language, theme, shortcuts. Stored locally and shared between tabs. */
import { effect, signal } from "@preact/signals";
import { language, preferredLanguage, type Language } from "../text/language";
import { onTabMessage, tellTabs } from "./tabs";

export type Theme = "system" | "light" | "dark";
export const THEMES: readonly Theme[] = ["system", "light", "dark"];
const KEY = "dtrag.preferences";

interface Stored {
  language?: Language;
  theme?: Theme;
  shortcuts?: boolean;
}

export const theme = signal<Theme>("system");
export const shortcutsOn = signal(true);

function read(): Stored {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {}; // storage is switched off or holds something else: the defaults
  }
}

function write(change: Stored): void {
  try {
    localStorage.setItem(KEY, JSON.stringify({ ...read(), ...change }));
  } catch {
    return; // the choice holds until the page is closed
  }
  tellTabs({ kind: "preferences" });
}

function apply(): void {
  const stored = read();
  language.value = stored.language ?? preferredLanguage(navigator.languages);
  theme.value = stored.theme && THEMES.includes(stored.theme) ? stored.theme : "system";
  shortcutsOn.value = stored.shortcuts ?? true;
}

/** Read the stored choices and keep `lang` and the theme of the page in step with them. */
export function startPreferences(): void {
  apply();
  onTabMessage((message) => message.kind === "preferences" && apply());
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
