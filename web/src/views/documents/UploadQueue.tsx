/** The files that are being added: the whole, each one, and what failed. */
import { useState } from "preact/hooks";
import { href } from "../../state/router";
import { Badge, type Tone } from "../../parts/Badge";
import { Meter } from "../../parts/Bars";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { Said, StatementItems } from "../../parts/Statements";
import { VirtualList } from "../../parts/VirtualList";
import { sayProblem } from "../../state/statements";
import { formatPercent } from "../../text/texts";
import { formatPath, parsePath } from "../../state/query";
import { saveAs } from "../../state/save-as";
import { pathText } from "../../text/path-text";
import { CategoryField } from "./CategoryField";
import { t, type DocumentsKey } from "./text";
import {
  busy,
  clear,
  counts,
  failuresAsCsv,
  items,
  move,
  pause,
  retry,
  retryAll,
  skipped,
  skippedSentence,
  type Item,
  type Placement,
  type UploadState,
} from "./uploads";
import styles from "./UploadQueue.module.css";

const ROW = 36;
const VISIBLE_ROWS = 5;
const SHOWN_FAILURES = 20;

export function UploadQueue() {
  const { done, failed, waiting, active } = counts.value;
  const all = items.value;
  const [moving, setMoving] = useState<Item | null>(null);
  return (
    <div class={styles.queue}>
      <div class={styles.summary}>
        <p>
          <strong>{t("upload.progress", { done, n: all.length })}</strong>
          {failed > 0 && <Badge tone="bad">{t("upload.failedCount", { n: failed })}</Badge>}
        </p>
        <Button small kind="bare" icon={busy.value ? "stop" : "close"} onClick={clear}>
          {t(busy.value ? "upload.stop" : "upload.close")}
        </Button>
      </div>
      <Meter value={done + failed} max={all.length} tone={failed > 0 && waiting + active === 0 ? "warn" : "accent"} />
      {pause.value && (
        <p class={styles.pause} role="status">
          {t("upload.paused", { reason: sayProblem(pause.value).text })}
        </p>
      )}
      <div class={styles.list} style={{ height: `${Math.min(all.length, VISIBLE_ROWS) * ROW}px` }}>
        <VirtualList count={all.length} rowHeight={ROW} label={t("upload.list")}>
          {(index) => <Row item={all[index]} onMove={setMoving} />}
        </VirtualList>
      </div>
      {failed > 0 && <Failures />}
      {skipped.value.size > 0 && <Skipped />}
      {moving && <Moving item={moving} onClose={() => setMoving(null)} />}
    </div>
  );
}

const TONES: Record<UploadState["kind"], Tone> = {
  waiting: "neutral",
  sending: "accent",
  reading: "accent",
  done: "good",
  failed: "bad",
};

function Row({ item, onMove }: { item: Item | undefined; onMove: (item: Item) => void }) {
  if (!item) return null;
  const { state } = item;
  const [document] = state.kind === "done" ? state.documents : [];
  return (
    <div class={styles.row}>
      <span class={styles.path} title={item.path}>
        {document ? <a href={href("documents", { path: [document] })}>{item.path}</a> : item.path}
      </span>
      {state.kind === "sending" && <Meter value={state.share} />}
      {state.kind === "done" && !item.category && !state.unchanged && (
        <button type="button" class={styles.place} aria-haspopup="dialog" onClick={() => onMove(item)}>
          {placeText(state.placement)}
        </button>
      )}
      <Badge tone={TONES[state.kind]}>{stateText(state)}</Badge>
    </div>
  );
}

/** Where a file without a category was put: its category with the confidence, or the proposed one. */
function placeText(placement: Placement | null): string {
  const path = placement && pathText(placement.taxonomy_path);
  const place = path ? `${path} · ${formatPercent(placement.confidence)}` : t("documents.noCategory");
  return placement?.hitl ? t("upload.waits", { place }) : place;
}

/** Why a file is in its category, and another one for it. */
function Moving({ item, onClose }: { item: Item; onClose: () => void }) {
  const [category, setCategory] = useState("");
  const placement = item.state.kind === "done" ? item.state.placement : null;
  const path = formatPath(parsePath(category));
  return (
    <Dialog
      title={item.path}
      open
      onClose={onClose}
      footer={
        <Button
          kind="main"
          disabled={!path}
          onClick={() => {
            move(item.id, path);
            onClose();
          }}
        >
          {t("upload.move")}
        </Button>
      }
    >
      <p>{placeText(placement)}</p>
      <ul>
        <StatementItems statements={placement?.reason_statements ?? []} />
      </ul>
      <CategoryField value={category} required={false} error={undefined} onInput={setCategory} />
    </Dialog>
  );
}

function stateText(state: UploadState): string {
  if (state.kind === "sending") return t("upload.sending", { p: formatPercent(state.share) });
  if (state.kind === "done" && state.unchanged) return t("upload.unchanged");
  return t(`upload.${state.kind}` satisfies DocumentsKey);
}

function Failures() {
  const failures = items.value.filter((item) => item.state.kind === "failed");
  return (
    <section class={styles.failures} aria-labelledby="upload-failures">
      <div class={styles.summary}>
        <h2 id="upload-failures">{t("upload.failures")}</h2>
        <div class={styles.tools}>
          <Button small icon="retry" onClick={retryAll}>
            {t("upload.retryAll")}
          </Button>
          <Button small onClick={() => saveAs("dtrag-upload-failures.csv", failuresAsCsv())}>
            {t("upload.download")}
          </Button>
        </div>
      </div>
      <ul>
        {failures.slice(0, SHOWN_FAILURES).map((item) => (
          <li key={item.id}>
            <div>
              <strong>{item.path}</strong>
              {item.state.kind === "failed" && (
                <p>
                  <Said text={item.state.reason} statements={item.state.statements ?? []} />
                </p>
              )}
            </div>
            <Button
              small
              kind="bare"
              icon="retry"
              label={t("upload.retryOne", { path: item.path })}
              onClick={() => retry([item.id])}
            />
          </li>
        ))}
      </ul>
      {failures.length > SHOWN_FAILURES && <p>{t("upload.moreFailures", { n: failures.length - SHOWN_FAILURES })}</p>}
    </section>
  );
}

/** Nothing is added: all files that were chosen are of kinds that are not read. */
export function SkippedOnly() {
  return (
    <div class={styles.queue}>
      <Skipped />
      <Button small onClick={clear}>
        {t("upload.close")}
      </Button>
    </div>
  );
}

function Skipped() {
  const [open, setOpen] = useState(false);
  const paths = [...skipped.value.values()].flat();
  return (
    <details class={styles.skipped} open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{skippedSentence(skipped.value)}</summary>
      {open && (
        <ul>
          {paths.map((path) => (
            <li key={path}>{path}</li>
          ))}
        </ul>
      )}
    </details>
  );
}
