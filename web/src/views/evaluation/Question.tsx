/** A question with its values; opened, what the run stored of it, and a link to ask it again. */
import { href } from "../../app/router";
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

export function AskAgain({ question }: { question: string }) {
  return (
    <p>
      <a href={href("ask", { query: { q: question } })}>{t("question.askAgain")}</a>
    </p>
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
