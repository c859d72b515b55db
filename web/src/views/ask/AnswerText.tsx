/** The text of an answer: quotations as they are, a model's text as Markdown; `[n]` leads to its source. */
import { Markdown } from "../../parts/Markdown";
import { QuotedAnswer } from "../../parts/QuotedText";
import { CitationMark } from "./CitationMark";
import type { Turn } from "./turn";

export function AnswerText({ turn }: { turn: Turn }) {
  const cite = (number: number, key: number) => <CitationMark key={key} turn={turn} number={number} />;
  if (turn.answer?.metadata.model) return <Markdown text={turn.text} cite={cite} />;
  return <QuotedAnswer text={turn.text} sources={turn.sources} marked={turn.answer?.marked} cite={cite} />;
}
