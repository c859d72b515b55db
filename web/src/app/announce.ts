/** The live region: whole sentences for screen readers. */
import { signal } from "@preact/signals";

export const announcement = signal({ text: "", number: 0 });

export function announce(sentence: string): void {
  announcement.value = { text: sentence, number: announcement.value.number + 1 };
}
