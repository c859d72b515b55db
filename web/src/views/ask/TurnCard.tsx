/** A question with its answer: while it is written, when it is there, and when it failed. */
import { href } from "../../state/router";
import { mayAs, mayOpen } from "../../state/session";
import { Button } from "../../parts/Button";
import { CopyButton } from "../../parts/CopyButton";
import { Failure } from "../../parts/States";
import { StatementItems } from "../../parts/Statements";
import { languageOf } from "../../text/language";
import { partNames } from "../../text/part-names";
import { AnswerText } from "./AnswerText";
import { ArticleAnswer, onlySource } from "./ArticleAnswer";
import { Confidence, judgementOf } from "./Confidence";
import { DeclinedAnswer } from "./DeclinedAnswer";
import { AnsweredBefore, Offered } from "./EarlierQuestions";
import { Feedback } from "./Feedback";
import { Sources } from "./Sources";
import { linkToAsk } from "./state";
import { t } from "./text";
import type { Answer, Turn } from "./turn";
import { retry } from "./turns";
import { progressOf } from "./progress";
import styles from "./TurnCard.module.css";

export function TurnCard({ turn, last }: { turn: Turn; last: boolean }) {
  const { answer, state } = turn;
  return (
    <article class={styles.turn} aria-busy={state === "running"}>
      <h2 class={styles.question} lang={languageOf(turn.question)}>
        {turn.question}
      </h2>
      {turn.text && <Text turn={turn} />}
      {state === "running" && <p class={styles.progress}>{progressOf(turn)}</p>}
      {state === "stopped" && <p class={styles.note}>{t("ask.stopped")}</p>}
      {state === "stored" && <p class={styles.note}>{t("ask.noSources")}</p>}
      {state === "withheld" && <p class={styles.note}>{t("ask.withheld")}</p>}
      {state === "failed" && turn.problem && (
        <Failure problem={turn.problem} onRetry={last ? () => void retry(turn) : undefined} />
      )}
      {answer && <Evidence turn={turn} answer={answer} />}
      {state !== "running" && state !== "failed" && <Actions turn={turn} last={last} />}
    </article>
  );
}

/** Text that is quoted from one passage is shown as this passage. */
function Text({ turn }: { turn: Turn }) {
  const only = onlySource(turn);
  const text = (
    <div class={styles.answer} lang={languageOf(turn.text)}>
      <AnswerText turn={turn} />
    </div>
  );
  if (!only || turn.answer?.metadata.model) return text;
  return (
    <ArticleAnswer turn={turn} source={only}>
      {text}
    </ArticleAnswer>
  );
}

/** What the answer rests on. */
function Evidence({ turn, answer }: { turn: Turn; answer: Answer }) {
  const { degraded, note_statements: notes, hitl_required, model } = answer.metadata;
  const only = onlySource(turn);
  return (
    <>
      <Confidence answer={answer} />
      {judgementOf(answer) === "abstain" && <DeclinedAnswer turn={turn} answer={answer} />}
      {answer.answered_before && <AnsweredBefore before={answer.answered_before} />}
      {answer.offered && answer.offered.length > 0 && <Offered turn={turn} offered={answer.offered} />}
      {hitl_required && <p class={styles.note}>{t("ask.waiting")}</p>}
      {degraded.length > 0 && <p class={styles.warning}>{t("ask.degraded", { parts: partNames(degraded) })}</p>}
      {only && model && <ArticleAnswer turn={turn} source={only} />}
      {!only && turn.sources.length > 0 && <Sources turn={turn} />}
      {notes.length > 0 && (
        <details class={styles.notes}>
          <summary>{t("ask.notes", { n: notes.length })}</summary>
          <ul>
            <StatementItems statements={notes} />
          </ul>
        </details>
      )}
    </>
  );
}

function Actions({ turn, last }: { turn: Turn; last: boolean }) {
  const { traceId } = turn;
  return (
    <div class={styles.actions}>
      {turn.text && <CopyButton text={() => answerWithSources(turn)} label={t("ask.copyAnswer")} />}
      <CopyButton text={() => linkToAsk(turn)} label={t("ask.copyLink")} />
      {last && (
        <Button kind="bare" small icon="retry" onClick={() => void retry(turn)}>
          {t("ask.retry")}
        </Button>
      )}
      {traceId && mayOpen("trace") && (
        <a class={styles.link} href={href("trace", { path: [traceId] })}>
          {t("ask.trace")}
        </a>
      )}
      {traceId && mayAs("reader") && <Feedback turn={turn} />}
    </div>
  );
}

/** The answer as text, with its sources below it. */
function answerWithSources(turn: Turn): string {
  const sources = turn.sources.map((source) => `[${source.number}] ${source.label}: “${source.quote}”`);
  return [turn.text, ...sources].join("\n\n");
}
