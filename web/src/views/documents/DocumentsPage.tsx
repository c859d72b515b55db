/** All documents, the newest first, and the place to add files. */
import { useEffect, useRef, useState } from "preact/hooks";
import { pathText } from "../../text/path-text";
import { usePaged } from "../../state/paged";
import { href } from "../../state/router";
import { mayAs } from "../../state/session";
import { useMedia } from "../../state/use-media";
import { api } from "../../api/client";
import { Button } from "../../parts/Button";
import { JobsPart } from "../../parts/jobs/JobsPart";
import { kindName } from "../../parts/file-kinds";
import { Page } from "../../parts/Page";
import { Empty, Failure, Loading } from "../../parts/States";
import { VirtualList } from "../../parts/VirtualList";
import { formatDate, formatNumber } from "../../text/texts";
import { address, listQuery, type Document } from "./state";
import { t } from "./text";
import { ChangeMany } from "./ChangeMany";
import { ListTools } from "./ListTools";
import { useTicked, type Ticked } from "./ticked";
import { UploadPanel } from "./UploadPanel";
import { written } from "./uploads";
import styles from "./DocumentsPage.module.css";

const WIDE = "(min-width: 60rem)";
const ROW = { wide: 44, narrow: 64 };
/** Scrolling is noted in the address when it rests. */
const REST_MS = 400;
const VECTORS_MS = 5000;

export function DocumentsPage() {
  const { q, branch, type, sort } = address.read();
  const [pending, setPending] = useState(0);
  useProgress(pending > 0, setPending);
  const documents = usePaged<Document>(
    async ({ limit, offset, signal }) => {
      const page = await api.get("/documents", { query: { ...listQuery(), limit, offset }, signal });
      setPending(page.total.vectors_pending);
      return { rows: page.documents, total: page.total.documents };
    },
    [written.value, q, branch, type, sort],
  );
  const selects = q !== "" || branch !== "" || type !== "";
  const lead =
    documents.total === undefined
      ? undefined
      : t(selects ? "documents.matching" : "documents.total", { n: documents.total }) +
        (pending ? ` ${t("documents.vectors", { n: pending })}` : "");
  return (
    <Page title={t("documents.title")} lead={lead} fill>
      <UploadPanel />
      <JobsPart
        added={written.value}
        onEnded={(jobs) => {
          if (jobs.some(({ kind }) => kind === "ingest")) written.value += 1;
        }}
      />
      {(selects || documents.total !== 0) && <ListTools />}
      {documents.problem ? (
        <Failure problem={documents.problem} onRetry={documents.reload} />
      ) : documents.total === undefined ? (
        <Loading lines={8} />
      ) : documents.total === 0 && selects ? (
        <Empty title={t("list.none")} text={t("list.noneHelp")}>
          <Button onClick={() => address.set({ q: "", branch: "", type: "", at: 0 }, { replace: true })}>
            {t("list.clear")}
          </Button>
        </Empty>
      ) : documents.total === 0 ? (
        <Empty title={t("documents.none")} text={t("documents.noneAdd")} />
      ) : (
        <List key={[q, branch, type, sort].join("\n")} documents={documents} total={documents.total} />
      )}
    </Page>
  );
}

/** Counts the passages that wait for vectors again and again, while any do. */
function useProgress(waiting: boolean, counted: (pending: number) => void): void {
  useEffect(() => {
    if (!waiting) return;
    const query = { limit: 1, category: address.read().branch };
    const count = () => api.get("/documents", { query }).then((page) => counted(page.total.vectors_pending));
    const timer = setInterval(() => void count().catch(() => undefined), VECTORS_MS);
    return () => clearInterval(timer);
  }, [waiting]);
}

interface ListProps {
  documents: ReturnType<typeof usePaged<Document>>;
  total: number;
}

function List({ documents, total }: ListProps) {
  const wide = useMedia(WIDE);
  const initial = useRef(Math.min(address.read().at, Math.max(0, total - 1)));
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const visible = (first: number, last: number) => {
    documents.show(first, last);
    clearTimeout(timer.current);
    const at = first === 0 ? 0 : first + 8; // rows above the visible ones are ready, too
    timer.current = setTimeout(() => address.set({ at }, { replace: true }), REST_MS);
  };
  const ticked = useTicked(async (offset, limit) => {
    const page = await api.get("/documents", { query: { ...listQuery(), limit, offset } });
    return page.documents.map((row) => row.document_id);
  });
  const changes = mayAs("editor");
  const rowHeight = wide ? ROW.wide : ROW.narrow;
  return (
    <>
      {changes && <ChangeMany ticked={ticked} total={total} />}
      <div class={`${styles.list} ${changes ? styles.ticks : ""}`}>
        <div class={styles.head} aria-hidden="true">
          {changes && <span />}
          <span>{t("documents.document")}</span>
          <span>{t("documents.category")}</span>
          <span>{t("documents.kind")}</span>
          <span class={styles.number}>{t("documents.passages")}</span>
          <span class={styles.number}>{t("documents.indexed")}</span>
        </div>
        <div class={styles.rows}>
          <VirtualList
            key={rowHeight}
            count={total}
            rowHeight={rowHeight}
            initial={initial.current}
            label={t("documents.title")}
            onVisible={visible}
          >
            {(index) => <Row document={documents.row(index)} index={index} ticked={changes ? ticked : null} />}
          </VirtualList>
        </div>
      </div>
    </>
  );
}

interface RowProps {
  document: Document | undefined;
  index: number;
  /** Null: documents cannot be ticked. */
  ticked: Ticked | null;
}

function Row({ document, index, ticked }: RowProps) {
  if (!document) return <span class={styles.waiting} />;
  const category = pathText(document.taxonomy_path);
  const title = document.title || t("documents.untitled");
  return (
    <div class={styles.row}>
      {ticked && (
        <label class={styles.tick}>
          <input
            type="checkbox"
            checked={ticked.ids.has(document.document_id)}
            aria-label={t("many.select", { title })}
            onClick={(event) => ticked.toggle(document.document_id, index, event.shiftKey)}
          />
        </label>
      )}
      <a class={styles.title} href={href("documents", { path: [document.document_id] })} lang={document.language}>
        {title}
      </a>
      <span class={styles.category} title={category}>
        {category || t("documents.noCategory")}
      </span>
      <span>{kindName(document.content_type)}</span>
      <span class={styles.number}>
        {formatNumber(document.chunks)}
        <span class={styles.unit}>{t("documents.passagesUnit", { n: document.chunks })}</span>
      </span>
      <span class={styles.number}>{formatDate(document.processed_at)}</span>
    </div>
  );
}
