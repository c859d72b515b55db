import { Badge, type Tone } from "../../parts/Badge";
import { t } from "./text";

const TONES = { answer: "good", review: "warn", abstain: "neutral" } satisfies Record<string, Tone>;

/** How an answer was judged, in a word. */
export function Decision({ decision }: { decision: string }) {
  const known = decision === "answer" || decision === "review" || decision === "abstain" ? decision : null;
  return <Badge tone={known ? TONES[known] : "neutral"}>{known ? t(`decision.${known}`) : decision}</Badge>;
}
