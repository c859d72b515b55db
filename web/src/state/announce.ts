/** The live region: whole sentences for screen readers. */
import { signal } from "@preact/signals";

export const announcement = signal({ text: "", number: 0 });
/** The modal dialogs that are open, the topmost last: what is behind them is not read out. */
export const openDialogs = signal<readonly object[]>([]);

export function announce(sentence: string): void {
  announcement.value = { text: sentence, number: announcement.value.number + 1 };
}
