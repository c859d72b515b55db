/** What is being done for a running answer, by the step that ended last. */
import { t, type AskKey } from "./text";
import type { Turn } from "./turn";

const NEXT: Record<string, AskKey> = {
  "": "ask.asking",
  intent: "ask.asking",
  rewrite: "ask.asking",
  retrieve: "ask.writing",
  plan: "ask.writing",
  tools_debate: "ask.writing",
  compose: "ask.checking",
  cite: "ask.checking",
};

export const progressOf = (turn: Turn): string => t(NEXT[turn.step] ?? "ask.writing");
