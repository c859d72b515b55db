/** The text of a provision, in which each citation of another one is marked; one with a target is a link to it. */
import { useMemo } from "preact/hooks";
import { CellTable } from "../../parts/CellTable";
import { segments } from "../../parts/code-points";
import { partsOf, type Piece } from "../../parts/table-lines";
import { address, citesAnother, linkToCited, targetsOf, type Citation, type Provision } from "./state";
import styles from "./Regulations.module.css";

export function ArticleText({ provision: { name, text, ...provision } }: { provision: Provision }) {
  const citations = provision.citations.filter((citation) => citesAnother(citation, name));
  const parts = useMemo(() => partsOf(text, 0), [text]);
  const cited = (piece: Piece) => <Cited key={piece.start} piece={piece} citations={citations} own={name} />;
  return (
    <div class={styles.section} lang="ko">
      {parts.map((part) =>
        part.kind === "table" ? (
          <div key={part.start} class={styles.cells}>
            <CellTable head={[]} rows={part.rows.map((row) => row.map(({ words }) => cited(words)))} />
          </div>
        ) : (
          part.text.trim() && (
            <p key={part.start} class={styles.text} lang="ko">
              {cited(part)}
            </p>
          )
        ),
      )}
    </div>
  );
}

interface CitedProps {
  piece: Piece;
  citations: readonly Citation[];
  own: string;
}

function Cited({ piece, citations, own }: CitedProps) {
  const { asOf } = address.read();
  const spans = citations.map(({ start, end }, index) => ({ start, end, kind: String(index) }));
  return (
    <>
      {segments(piece.text, spans, piece.start).map(({ text, start, kinds }) => {
        const citation = citations[Number(kinds[0] ?? -1)];
        if (!citation) return text;
        const [target] = targetsOf(citation, own);
        return target ? (
          <a key={start} class={styles.cited} href={linkToCited(target, asOf)} data-kind={citation.kind}>
            {text}
          </a>
        ) : (
          <span key={start} class={styles.cited} data-kind={citation.kind}>
            {text}
          </span>
        );
      })}
    </>
  );
}
