/** The text of a provision, in which each citation of another one is marked; one with a target is a link to it. */
import { segments } from "../../parts/code-points";
import { address, citesAnother, linkToCited, targetsOf, type Provision } from "./state";
import styles from "./Regulations.module.css";

export function ArticleText({ provision: { name, text, ...provision } }: { provision: Provision }) {
  const { asOf } = address.read();
  const citations = provision.citations.filter((citation) => citesAnother(citation, name));
  const pieces = segments(
    text,
    citations.map(({ start, end }, index) => ({ start, end, kind: String(index) })),
  );
  return (
    <p class={styles.text} lang="ko">
      {pieces.map((piece) => {
        const citation = citations[Number(piece.kinds[0] ?? -1)];
        if (!citation) return piece.text;
        const [target] = targetsOf(citation, name);
        return target ? (
          <a key={piece.start} class={styles.cited} href={linkToCited(target, asOf)} data-kind={citation.kind}>
            {piece.text}
          </a>
        ) : (
          <span key={piece.start} class={styles.cited} data-kind={citation.kind}>
            {piece.text}
          </span>
        );
      })}
    </p>
  );
}
