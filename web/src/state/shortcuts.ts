/** Keyboard shortcuts: single keys and sequences such as `g a`. They can be switched off (WCAG 2.1.4). */
import { signal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { shortcutsOn } from "./preferences";

export interface Shortcut {
  /** A key as `KeyboardEvent.key` names it, or two with a blank: "/", "g a". */
  keys: string;
  /** What it does, in the language of the page. */
  label: () => string;
  run: () => void;
}

const SEQUENCE_MS = 1500;
/** The shortcuts of now: those of the shell, then those of the view. */
export const shortcuts = signal<readonly Shortcut[]>([]);
let first = "";
let firstAt = 0;

/** Shortcuts of a view, as long as it is shown. `list` is read when a key is pressed, so it may close over state. */
export function useShortcuts(list: readonly Shortcut[]): void {
  const keys = list.map((shortcut) => shortcut.keys).join(" ");
  // Before the view is painted: a key that is pressed as soon as it is seen counts.
  useLayoutEffect(() => {
    shortcuts.value = [...shortcuts.peek(), ...list];
    return () => {
      shortcuts.value = shortcuts.peek().filter((shortcut) => !list.includes(shortcut));
    };
  }, [keys, ...list.map((shortcut) => shortcut.run)]);
}

export function startShortcuts(): void {
  document.addEventListener("keydown", pressed);
}

function pressed(event: KeyboardEvent): void {
  if (!shortcutsOn.value || event.defaultPrevented || event.isComposing) return;
  if (event.ctrlKey || event.metaKey || event.altKey || takesText(event.target)) return;
  if (document.querySelector("dialog:modal")) return;
  const key = keyOf(event);
  const sequence = first && event.timeStamp - firstAt < SEQUENCE_MS ? `${first} ${key}` : key;
  const match = shortcuts.value.findLast((shortcut) => shortcut.keys === sequence);
  if (match) {
    event.preventDefault();
    first = "";
    match.run();
    return;
  }
  first = shortcuts.value.some((shortcut) => shortcut.keys.startsWith(`${key} `)) ? key : "";
  firstAt = event.timeStamp;
}

/** The letter of the key where the layout has no Latin letters, such as a Korean one; otherwise what it types. */
function keyOf(event: KeyboardEvent): string {
  const letter = /^Key([A-Z])$/.exec(event.code)?.[1];
  const typesAnother = event.key.length > 1 ? event.key === "Process" : event.key.charCodeAt(0) > 127;
  return letter && typesAnother ? letter.toLowerCase() : event.key;
}

function takesText(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement)
    return true;
  if (target.closest("[role=tree]")) return true; // letters search in a tree
  return target instanceof HTMLInputElement && !["checkbox", "radio", "button", "range"].includes(target.type);
}
