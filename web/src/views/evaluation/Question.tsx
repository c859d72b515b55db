/** A question with its values; opened, what the run stored of it, and ways to ask it again: as such, or for its trace. */
import { useState } from "preact/hooks";
import { href, navigate } from "../../state/router";
import { api } from "../../api/client";
import { asProblem, type Problem } from "../../api/problem";
import { Button } from "../../parts/Button";
import { Failure } from "../../parts/States";
import { valueOf } from "./measures";
import type { Row } from "./state";
import { t } from "./text";
import styles from "./Evaluation.module.css";

export function Question({ row }: { row: Row }) {
  const values = Object.keys(row.ratios).flatMap((name) => {
    const value = valueOf(row, name);
    return value === null ? [] : [`${name} ${value.toFixed(2)}`];
  });
  return (
    <details class={styles.question}>
      <summary>
        <span class={styles.words}>{row.question}</span>
        <span class={styles.small}>{values.join(" · ")}</span>
      </summary>
      <Details row={row} />
      <AskAgain question={row.question} />
    </details>
  );
}

/** Traces of a run end with its temporary index, so that a new one is made over the documents of the service. */
export function AskAgain({ question }: { question: string }) {
  const [asking, setAsking] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  async function openTrace() {
    setAsking(true);
    setProblem(null);
    try {
      const { metadata } = await api.post("/chat/run", { body: { message: question } });
      navigate(href("trace", { path: [metadata.trace_id] }));
    } catch (error) {
      setProblem(asProblem(error));
      setAsking(false);
    }
  }
  return (
    <>
      <p class={styles.row}>
        <a href={href("ask", { query: { q: question } })}>{t("question.askAgain")}</a>
        <Button small icon="trace" disabled={asking} onClick={() => void openTrace()}>
          {t(asking ? "question.asking" : "question.trace")}
        </Button>
      </p>
      <p class={styles.small}>{t("question.traceHelp")}</p>
      {problem && <Failure problem={problem} />}
    </>
  );
}

export function Details({ row }: { row: Row }) {
  const entries = Object.entries(row.details);
  if (entries.length === 0) return <p class={styles.small}>{t("question.noDetails")}</p>;
  return (
    <dl class={styles.details}>
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <Value value={value} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Value({ value }: { value: unknown }) {
  if (typeof value === "string") return <>{value || "–"}</>;
  if (!Array.isArray(value)) return <>{JSON.stringify(value)}</>;
  if (value.length === 0) return <>–</>;
  return (
    <ul>
      {value.map((item: unknown, index) => (
        <li key={index}>{typeof item === "string" ? item : JSON.stringify(item)}</li>
      ))}
    </ul>
  );
}
