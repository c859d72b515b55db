/** The text of a provision, in which each citation of another one is marked; one with a target is a link to it. */
import { useMemo } from "preact/hooks";
import { CellTable } from "../../parts/CellTable";
import { segments } from "../../parts/code-points";
import { partsOf, type Piece } from "../../parts/table-lines";
import { address, citesAnother, linkToCited, targetsOf, type Provision } from "./state";
import styles from "./Regulations.module.css";

type Props = Pick<Provision, "name" | "citations"> & { text: string; marks?: Provision["marks"] };

/** `marks`: its amendment marks, which are left out unless the address asks for them. */
export function ArticleText({ name, text, citations, marks = [] }: Props) {
  const others = citations.filter((citation) => citesAnother(citation, name));
  const parts = useMemo(() => partsOf(text, 0), [text]);
  const cited = (piece: Piece) => (
    <Cited key={piece.start} piece={piece} citations={others} marks={marks} name={name} />
  );
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

const MARK = "mark";

function Cited({ piece, citations, marks, name }: { piece: Piece } & Required<Omit<Props, "text">>) {
  const { asOf, marks: shown } = address.read();
  const spans = [
    ...citations.map(({ start, end }, index) => ({ start, end, kind: String(index) })),
    ...marks.map(([start, end]) => ({ start, end, kind: MARK })),
  ];
  return (
    <>
      {segments(piece.text, spans, piece.start).map(({ text, start, kinds }) => {
        if (kinds.includes(MARK))
          return shown ? (
            <span key={start} class={styles.mark}>
              {text}
            </span>
          ) : null;
        const citation = citations[Number(kinds[0] ?? -1)];
        if (!citation) return text;
        const [target] = targetsOf(citation, name);
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
