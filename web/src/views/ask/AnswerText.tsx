/** The text of an answer: quotations as they are, a model's text as Markdown; `[n]` leads to its source. */
import { inline, Markdown } from "../../parts/Markdown";
import { citationsIn } from "../../parts/parse-markdown";
import { address } from "./state";
import { t } from "./text";
import type { Turn } from "./turns";
import styles from "./AnswerText.module.css";

export function AnswerText({ turn }: { turn: Turn }) {
  const cite = (number: number, key: number) => <CitationMark key={key} turn={turn} number={number} />;
  if (turn.answer?.metadata.model) return <Markdown text={turn.text} cite={cite} />;
  return <p class={styles.plain}>{inline(citationsIn(turn.text), cite)}</p>;
}

function CitationMark({ turn, number }: { turn: Turn; number: number }) {
  const source = turn.sources.find((candidate) => candidate.number === number);
  if (!source) return <>[{number}]</>;
  const name = t("ask.source", { n: number, label: source.label });
  return (
    <a class={styles.mark} href={address.link({ source: `${turn.id}.${number}` })} aria-label={name}>
      {number}
    </a>
  );
}
