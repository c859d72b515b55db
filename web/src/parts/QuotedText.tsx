/** Quoted text as elements: its lines as they are, its rows as tables. */
import { CellTable } from "./CellTable";
import { inline, type Cite } from "./Markdown";
import { quotationBlocks, quotedBlocks, type Quoted, type QuotedSource } from "./table-rows";
import styles from "./QuotedText.module.css";

interface AnswerProps {
  text: string;
  sources: readonly QuotedSource[];
  /** Spans of the sentences that answer, in code points. */
  marked?: readonly number[][];
  /** What `[n]` becomes; the text itself when left out. */
  cite?: Cite;
}

/** The text of an answer that quotes documents. */
export function QuotedAnswer({ text, sources, marked, cite }: AnswerProps) {
  return <Blocks blocks={quotedBlocks(text, sources, marked)} cite={cite} />;
}

/** One quotation with what is needed to understand it. */
export function Quotation({ source }: { source: Omit<QuotedSource, "number"> }) {
  return <Blocks blocks={quotationBlocks(source)} />;
}

function Blocks({ blocks, cite }: { blocks: readonly Quoted[]; cite?: Cite }) {
  return (
    <div class={styles.quoted}>
      {blocks.map((block, key) => {
        if (block.kind === "paragraph") return <p key={key}>{inline(block.children, cite)}</p>;
        const cells = (row: (typeof block.rows)[number]) => row.map((cell) => inline(cell, cite));
        return <CellTable key={key} head={block.head.map(cells)} rows={block.rows.map(cells)} />;
      })}
    </div>
  );
}
