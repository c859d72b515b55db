/** How far the answer can be trusted, in a few words; opened, what that means and how it was reached. */
import { Badge, type Tone } from "../../parts/Badge";
import { Icon } from "../../parts/Icon";
import { StatementText } from "../../parts/Statements";
import { formatPercent, formatSeconds } from "../../text/texts";
import { t } from "./text";
import type { Answer } from "./turn";
import styles from "./Confidence.module.css";

type Judgement = "answer" | "review" | "abstain" | "unfinished";
const TONES: Record<Judgement, Tone> = { answer: "good", review: "warn", abstain: "neutral", unfinished: "warn" };

/** What a declined answer shows by itself. */
const SHOWN_BELOW: ReadonlySet<string> = new Set(["searched", "unknown_words", "words_apart", "nearest_headings"]);

export function judgementOf({ metadata }: Answer): Judgement {
  if (metadata.unfinished) return "unfinished";
  return metadata.decision === "answer" || metadata.decision === "abstain" ? metadata.decision : "review";
}

export function Confidence({ answer }: { answer: Answer }) {
  const judgement = judgementOf(answer);
  const { reason_statements, model, latency, debated, tools } = answer.metadata;
  const judged = reason_statements.filter(({ code }) => !answer.declined || !SHOWN_BELOW.has(code));
  const probability = formatPercent(answer.answer_confidence ?? answer.confidence);
  return (
    <details class={styles.confidence}>
      <summary>
        <Badge tone={TONES[judgement]}>
          {t(`confidence.${judgement}`, { p: probability })}
          <Icon name="down" size={14} />
        </Badge>
      </summary>
      <div class={styles.words}>
        <p>{t(`explain.${judgement}`, { p: probability })}</p>
        <p>
          {model ? t("ask.model", { model }) : t("ask.quoted")} {debated && `${t("ask.debated")} `}
          {t("ask.took", { time: formatSeconds(latency) })}
        </p>
        {tools.length > 0 && <p>{t("ask.tools", { names: tools.map((tool) => tool.tool).join(", ") })}</p>}
        <p class={styles.reason}>
          {t("ask.reason")} <StatementText statements={judged} />
        </p>
      </div>
    </details>
  );
}
