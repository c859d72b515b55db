/** The passages of a document in their order; each leads to its place in the text. */
import { pathText } from "../../text/path-text";
import { usePaged } from "../../state/paged";
import { api } from "../../api/client";
import { Empty, Failure, Loading } from "../../parts/States";
import { VirtualList } from "../../parts/VirtualList";
import { address, type Document, type PassageSpan } from "./state";
import { t } from "./text";
import styles from "./PassagesPart.module.css";

const ROW = 52;
const VISIBLE_ROWS = 12;

export function PassagesPart({ document }: { document: Document }) {
  const passages = usePaged<PassageSpan>(
    async ({ limit, offset, signal }) => {
      const page = await api.get("/documents/{document_id}/passages", {
        path: { document_id: document.document_id },
        query: { limit, offset },
        signal,
      });
      return { rows: page.passages, total: page.total };
    },
    [document.document_id],
  );
  if (passages.problem) return <Failure problem={passages.problem} onRetry={passages.reload} />;
  if (passages.total === undefined) return <Loading lines={8} />;
  if (passages.total === 0) return <Empty title={t("document.noPassages")} />;
  return (
    <div class={styles.list} style={{ height: `${Math.min(passages.total, VISIBLE_ROWS) * ROW + 2}px` }}>
      <VirtualList
        count={passages.total}
        rowHeight={ROW}
        label={t("document.passages")}
        onVisible={passages.show.bind(passages)}
      >
        {(index) => <Row passage={passages.row(index)} />}
      </VirtualList>
    </div>
  );
}

function Row({ passage }: { passage: PassageSpan | undefined }) {
  if (!passage) return <span class={styles.waiting} />;
  const span = `${passage.start}-${passage.end}`;
  const to = address.link({ show: "text", passage: span, quote: [], context: [], answer: [] });
  return (
    <div class={styles.row}>
      <span class={styles.number}>{passage.ordinal + 1}</span>
      <div class={styles.words}>
        <a href={to}>{passage.breadcrumb.at(-1) ?? t("document.passage", { n: passage.ordinal + 1 })}</a>
        <p>
          {passage.page !== null && `${t("document.page", { n: passage.page })} · `}
          {t("document.span", { start: passage.start, end: passage.end })}
          {passage.breadcrumb.length > 2 && ` · ${pathText(passage.breadcrumb.slice(1, -1))}`}
        </p>
      </div>
    </div>
  );
}
