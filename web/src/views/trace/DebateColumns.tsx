/** A debate of two agents: their answers beside each other, round by round, and what came of it. */
import { Markdown } from "../../parts/Markdown";
import { formatNumber, formatSeconds } from "../../text/texts";
import { t } from "./text";
import type { Debate } from "./trace-facts";
import styles from "./DebateColumns.module.css";

export function DebateColumns({ debate }: { debate: Debate }) {
  return (
    <div class={styles.debate}>
      <p class={styles.small}>
        {t("debate.facts", {
          rounds: debate.rounds,
          calls: debate.calls,
          time: formatSeconds(debate.seconds),
          tokens: formatNumber(debate.tokens),
          cost: Math.round(debate.cost * 100) / 100,
        })}{" "}
        {debate.models.join(", ")}
      </p>
      {debate.turns.length === 0 && <p class={styles.small}>{t("debate.notKept")}</p>}
      {debate.turns.map((turn, index) => (
        <section key={index} class={styles.round} aria-label={t("debate.round", { n: index + 1 })}>
          <h3>{t("debate.round", { n: index + 1 })}</h3>
          <Side title={t("debate.affirmative")} text={turn.affirmative} />
          <Side title={t("debate.critical")} text={turn.critical} />
        </section>
      ))}
      {debate.final && (
        <section class={styles.final}>
          <h3>{t("debate.final")}</h3>
          <Markdown text={debate.final} />
        </section>
      )}
      {debate.notes.map((note) => (
        <p key={note} class={styles.small} lang="en">
          {note}
        </p>
      ))}
    </div>
  );
}

function Side({ title, text }: { title: string; text: string }) {
  return (
    <div class={styles.side}>
      <h4>{title}</h4>
      {text ? <Markdown text={text} /> : <p class={styles.small}>{t("debate.silent")}</p>}
    </div>
  );
}
