/** The files that are being added: the whole, each one, and what failed. */
import { useState } from "preact/hooks";
import { href } from "../../app/router";
import { Badge, type Tone } from "../../parts/Badge";
import { Meter } from "../../parts/Bars";
import { Button } from "../../parts/Button";
import { Said } from "../../parts/Statements";
import { VirtualList } from "../../parts/VirtualList";
import { sayProblem } from "../../text/statements";
import { formatPercent } from "../../text/texts";
import { saveAs } from "../../app/save-as";
import { t, type DocumentsKey } from "./text";
import {
  busy,
  clear,
  counts,
  failuresAsCsv,
  items,
  pause,
  retry,
  retryAll,
  skipped,
  skippedSentence,
  type Item,
  type UploadState,
} from "./uploads";
import styles from "./UploadQueue.module.css";

const ROW = 36;
const VISIBLE_ROWS = 5;
const SHOWN_FAILURES = 20;

export function UploadQueue() {
  const { done, failed, waiting, active } = counts.value;
  const all = items.value;
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
          {(index) => <Row item={all[index]} />}
        </VirtualList>
      </div>
      {failed > 0 && <Failures />}
      {skipped.value.size > 0 && <Skipped />}
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

function Row({ item }: { item: Item | undefined }) {
  if (!item) return null;
  const { state } = item;
  const [document] = state.kind === "done" ? state.documents : [];
  return (
    <div class={styles.row}>
      <span class={styles.path} title={item.path}>
        {document ? <a href={href("documents", { path: [document] })}>{item.path}</a> : item.path}
      </span>
      {state.kind === "sending" && <Meter value={state.share} />}
      <Badge tone={TONES[state.kind]}>{stateText(state)}</Badge>
    </div>
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
