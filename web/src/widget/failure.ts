/** A question that failed: what happened, and the one thing to do. */
import type { AskFailure, FailureKind } from "./ask";
import { button, element } from "./element";
import type { Say, TextKey } from "./text";

const SENTENCES: Record<FailureKind, [what: TextKey, help: TextKey]> = {
  unauthorized: ["unauthorized", "unauthorizedHelp"],
  origin: ["origin", "originHelp"],
  forbidden: ["forbidden", "forbiddenHelp"],
  busy: ["busy", "busyHelp"],
  unavailable: ["unavailable", "unavailableHelp"],
  offline: ["offline", "offlineHelp"],
  unreachable: ["unreachable", "unreachableHelp"],
  invalid: ["invalid", "invalidHelp"],
  unfinished: ["unfinished", "failedHelp"],
  interrupted: ["interrupted", "failedHelp"],
  failed: ["failed", "failedHelp"],
};
/** Another attempt cannot help here. */
const FINAL: ReadonlySet<FailureKind> = new Set(["unauthorized", "origin", "forbidden", "invalid"]);

export function failureSentences(kind: FailureKind, say: Say): string {
  const [what, help] = SENTENCES[kind];
  return `${say(what)} ${say(help)}`;
}

export function failureElements(failure: AskFailure, say: Say, onRetry: () => void): HTMLElement[] {
  const [what, help] = SENTENCES[failure.kind];
  const shown: HTMLElement[] = [
    element("p", { class: "strong" }, say(what)),
    element("p", { class: "quiet" }, say(help)),
  ];
  if (!FINAL.has(failure.kind)) shown.push(retryButton(failure.seconds, say, onRetry));
  return shown;
}

/** Counts the seconds down, and can be used at 0. */
function retryButton(seconds: number, say: Say, onRetry: () => void): HTMLButtonElement {
  const retry = button("", onRetry);
  const show = (left: number) => {
    retry.disabled = left > 0;
    retry.textContent = left > 0 ? say("retryIn", { n: left }) : say("retry");
    if (left > 0) setTimeout(() => show(left - 1), 1000);
  };
  show(seconds);
  return retry;
}
