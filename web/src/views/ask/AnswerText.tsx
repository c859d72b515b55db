/** The text of an answer: quotations as they are, a model's text as Markdown; `[n]` leads to its source. */
import { inline, Markdown } from "../../parts/Markdown";
import { citationsIn } from "../../parts/parse-markdown";
import { CitationMark } from "./CitationMark";
import type { Turn } from "./turns";
import styles from "./AnswerText.module.css";

export function AnswerText({ turn }: { turn: Turn }) {
  const cite = (number: number, key: number) => <CitationMark key={key} turn={turn} number={number} />;
  if (turn.answer?.metadata.model) return <Markdown text={turn.text} cite={cite} />;
  return <p class={styles.plain}>{inline(citationsIn(turn.text), cite)}</p>;
}
