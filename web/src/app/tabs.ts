/** Messages between the tabs of this browser, so that they agree on session, language and theme. */
import type { Stored } from "./preferences";

export type TabMessage = { kind: "preferences"; change: Stored } | { kind: "signed-in" } | { kind: "signed-out" };

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
