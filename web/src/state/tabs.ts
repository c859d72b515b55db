/** Messages between the tabs of this browser, so that they agree on session, language and theme. */
import type { Language } from "../text/language";

export type Theme = "system" | "light" | "dark";

/** What the reader chose for this browser. */
export interface Preferences {
  language?: Language;
  theme?: Theme;
  shortcuts?: boolean;
  /** Whether the guide for a new service was put away. */
  guideAway?: boolean;
}

export type TabMessage = { kind: "preferences"; change: Preferences } | { kind: "signed-in" } | { kind: "signed-out" };

type Listener = (message: TabMessage) => void;
const listeners = new Set<Listener>();
const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("dtrag");
channel?.addEventListener("message", (event: MessageEvent<TabMessage>) => {
  for (const listener of listeners) listener(event.data);
});

/** Send to the other tabs; this one does not receive it. */
export function tellTabs(message: TabMessage): void {
  channel?.postMessage(message);
}

export function onTabMessage(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
