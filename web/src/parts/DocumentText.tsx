/** Text of a document with marked spans; its tables are tables. Separators stay in the text, unseen: offsets hold. */
import { useMemo } from "preact/hooks";
import { CellTable } from "./CellTable";
import { pointsIn, type Span } from "./code-points";
import { Highlight } from "./Highlight";
import { partsOf, type Cell, type Piece } from "./table-lines";

interface Props {
  text: string;
  spans: readonly Span[];
  /** The code point offset at which `text` begins in the document. */
  from?: number;
}

export function DocumentText({ text, spans, from = 0 }: Props) {
  const parts = useMemo(() => partsOf(text, from), [text, from]);
  return (
    <>
      {parts.map((part) => {
        if (part.kind === "text") return <Marked key={part.start} piece={part} spans={spans} />;
        const cells = part.rows.map((row) =>
          row.map((cell) => <CellText key={cell.words.start} cell={cell} spans={spans} />),
        );
        const headers = headerRows(part.rows, spans);
        return <CellTable key={part.start} head={cells.slice(0, headers)} rows={cells.slice(headers)} />;
      })}
    </>
  );
}

function Marked({ piece, spans }: { piece: Piece; spans: readonly Span[] }) {
  return <Highlight text={piece.text} spans={spans} from={piece.start} />;
}

function CellText({ cell, spans }: { cell: Cell; spans: readonly Span[] }) {
  const unseen = (piece: Piece) =>
    piece.text && (
      <span hidden>
        <Marked piece={piece} spans={spans} />
      </span>
    );
  return (
    <>
      {unseen(cell.before)}
      <Marked piece={cell.words} spans={spans} />
      {unseen(cell.after)}
    </>
  );
}

/** How many of the first rows are what a quotation below them needs to be understood. */
function headerRows(rows: readonly Cell[][], spans: readonly Span[]): number {
  const contexts = spans.filter((span) => span.kind === "context");
  const isHeader = (row: readonly Cell[]) => {
    const [first, last] = [row[0]?.words, row.at(-1)?.words];
    const end = last ? last.start + pointsIn(last.text) : 0;
    return first !== undefined && contexts.some((span) => span.start <= first.start && end <= span.end);
  };
  const below = rows.findIndex((row) => !isHeader(row));
  return below < 0 ? 0 : below;
}
