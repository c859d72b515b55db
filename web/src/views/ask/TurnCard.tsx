/** A question with its answer: while it is written, when it is there, and when it failed. */
import { Button } from "../../parts/Button";
import { CopyButton } from "../../parts/CopyButton";
import { Failure } from "../../parts/States";
import { AnswerText } from "./AnswerText";
import { linkToAsk } from "./state";
import { t } from "./text";
import { retry, type Turn } from "./turns";
import styles from "./TurnCard.module.css";

export function TurnCard({ turn, last }: { turn: Turn; last: boolean }) {
  return (
    <article class={styles.turn}>
      <h2 class={styles.question}>{turn.question}</h2>
      <div class={styles.answer} aria-busy={turn.state === "running"}>
        {turn.text && <AnswerText turn={turn} />}
        {turn.state === "running" && <p class={styles.progress}>{t(turn.text ? "ask.writing" : "ask.asking")}</p>}
        {turn.state === "stopped" && <p class={styles.note}>{t("ask.stopped")}</p>}
        {turn.state === "stored" && <p class={styles.note}>{t("ask.noSources")}</p>}
        {turn.state === "withheld" && <p class={styles.note}>{t("ask.withheld")}</p>}
        {turn.state === "failed" && turn.problem && (
          <Failure problem={turn.problem} onRetry={last ? () => void retry(turn) : undefined} />
        )}
      </div>
      {turn.state !== "running" && turn.state !== "failed" && (
        <div class={styles.actions}>
          {turn.text && <CopyButton text={turn.text} label={t("ask.copyAnswer")} />}
          <CopyButton text={() => linkToAsk(turn)} label={t("ask.copyLink")} />
          {last && (
            <Button kind="bare" small icon="retry" onClick={() => void retry(turn)}>
              {t("ask.retry")}
            </Button>
          )}
        </div>
      )}
    </article>
  );
}
