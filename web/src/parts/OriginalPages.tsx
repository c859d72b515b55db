/** The pages of an original as pictures, one at a time, with a text marked on them. */
import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../api/client";
import type { components } from "../api/schema";
import { useResource } from "../state/resource";
import { Button } from "./Button";
import { t } from "./original-text";
import { Loaded } from "./States";
import styles from "./OriginalPages.module.css";

type Pages = components["schemas"]["OriginalPagesShape"];
/** Widths of a page, in percent of the room that there is. */
const WIDTHS = [100, 150, 200, 300] as const;

interface Props {
  documentId: string;
  span: { start: number; end: number } | null;
  /** The page that is shown when nothing is marked. */
  first: number;
}

export function OriginalPages({ documentId, span, first }: Props) {
  const query = { start: span?.start ?? 0, end: span?.end ?? 0 };
  const pages = useResource(
    (signal) => api.get("/documents/{document_id}/pages", { path: { document_id: documentId }, query, signal }),
    [documentId, query.start, query.end],
  );
  return (
    <Loaded resource={pages} lines={8}>
      {(shown) => <Sheet key={documentId} pages={shown} first={first} />}
    </Loaded>
  );
}

function Sheet({ pages, first }: { pages: Pages; first: number }) {
  const marked = pages.marked.find((page) => page.boxes.length > 0) ?? pages.marked[0];
  const [number, setNumber] = useState(marked?.page ?? first);
  const [width, setWidth] = useState(0);
  const [failed, setFailed] = useState(0);
  const sheet = useRef<HTMLDivElement>(null);
  const [drawn, setDrawn] = useState(0);
  useEffect(() => {
    if (drawn === number) sheet.current?.querySelector("span")?.scrollIntoView({ block: "center", inline: "center" });
  }, [drawn, number, width]);
  const here = pages.marked.find((page) => page.page === number);
  const others = pages.marked.filter((page) => page.page !== number && page.boxes.length > 0);
  return (
    <div class={styles.pages}>
      <div class={styles.tools}>
        <Button small disabled={number <= 1} onClick={() => setNumber(number - 1)}>
          {t("original.previous")}
        </Button>
        <span role="status">{t("original.page", { n: number, pages: pages.pages })}</span>
        <Button small disabled={number >= pages.pages} onClick={() => setNumber(number + 1)}>
          {t("original.next")}
        </Button>
        <Button small disabled={width === 0} onClick={() => setWidth(width - 1)}>
          {t("original.narrower")}
        </Button>
        <Button small disabled={width === WIDTHS.length - 1} onClick={() => setWidth(width + 1)}>
          {t("original.wider")}
        </Button>
      </div>
      {here?.boxes.length === 0 && <p>{t("original.unmarked")}</p>}
      {others.length > 0 && <p>{t("original.also", { pages: others.map(({ page }) => page).join(", ") })}</p>}
      {failed === number ? (
        <p role="alert">{t("original.failed")}</p>
      ) : (
        <div
          class={styles.frame}
          tabIndex={0}
          role="group"
          aria-label={t("original.page", { n: number, pages: pages.pages })}
        >
          <div ref={sheet} class={styles.sheet} style={{ width: `${WIDTHS[width]}%` }}>
            <img
              key={number}
              src={`/documents/${pages.document_id}/pages/${number}`}
              alt={t("original.alt", { n: number })}
              onLoad={() => setDrawn(number)}
              onError={() => setFailed(number)}
            />
            {drawn === number && here?.boxes.map((box) => <Mark key={box.join()} box={box} />)}
          </div>
        </div>
      )}
    </div>
  );
}

function Mark({ box }: { box: readonly number[] }) {
  const [left = 0, top = 0, right = 0, bottom = 0] = box.map((share) => share * 100);
  const place = { left: `${left}%`, top: `${top}%`, width: `${right - left}%`, height: `${bottom - top}%` };
  return <span class={styles.mark} style={place} data-mark="quote" />;
}
