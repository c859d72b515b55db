/** Text with marked spans; offsets are code points of the whole document. The text itself is never changed. */
import { segments, type Span } from "./code-points";
import styles from "./Highlight.module.css";

interface Props {
  text: string;
  spans: readonly Span[];
  /** The code point offset at which `text` begins in the document. */
  from?: number;
}

/** Kinds with a look: `quote` (cited), `context` (what it needs), `marked` (the sentence), `answer` (words that answer), `term` (found words). */
export function Highlight({ text, spans, from = 0 }: Props) {
  return (
    <>
      {segments(text, spans, from).map((segment) =>
        segment.kinds.length === 0 ? (
          segment.text
        ) : (
          <mark
            key={segment.start}
            class={[styles.mark, ...segment.kinds.map((kind) => styles[kind] ?? "")].join(" ")}
            data-kinds={segment.kinds.join(" ")}
            data-start={segment.start}
          >
            {segment.text}
          </mark>
        ),
      )}
    </>
  );
}
