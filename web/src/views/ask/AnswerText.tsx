/** The text of an answer: quotations as they are, a model's text as Markdown; `[n]` leads to its source. */
import { useState } from "preact/hooks";
import { Button } from "../../parts/Button";
import { Markdown } from "../../parts/Markdown";
import { QuotedAnswer } from "../../parts/QuotedText";
import { CitationMark } from "./CitationMark";
import { foldedAround } from "./folded-passage";
import { t } from "./text";
import type { Turn } from "./turn";

export function AnswerText({ turn }: { turn: Turn }) {
  const [whole, setWhole] = useState(false);
  const { text, answer, sources } = turn;
  const cite = (number: number, key: number) => <CitationMark key={key} turn={turn} number={number} />;
  if (answer?.metadata.model) return <Markdown text={text} cite={cite} />;
  if (!answer?.passage) return <QuotedAnswer text={text} sources={sources} marked={answer?.marked} cite={cite} />;
  const part = foldedAround(answer.passage);
  const more = (key: "source.before" | "source.after") => (
    <Button kind="bare" small onClick={() => setWhole(true)}>
      {t(key)}
    </Button>
  );
  return (
    <>
      {!whole && part.before && more("source.before")}
      <QuotedAnswer {...(whole ? answer.passage : part)} sources={sources} cite={cite} />
      {!whole && part.after && more("source.after")}
    </>
  );
}
