/** The newest answers, each with its judgement and time. */
import { integer, oneOf, queryState, text } from "../../state/query";
import { useResource } from "../../state/resource";
import { href } from "../../state/router";
import { mayWholeTreeAs } from "../../state/session";
import { api } from "../../api/client";
import { Badge } from "../../parts/Badge";
import { Button } from "../../parts/Button";
import { Field } from "../../parts/Field";
import { Page } from "../../parts/Page";
import { Segmented } from "../../parts/Segmented";
import { Empty, Loaded } from "../../parts/States";
import { formatDateTime, formatPercent, formatSeconds } from "../../text/texts";
import { Decision } from "./Decision";
import { partNames } from "../../text/part-names";
import { t } from "./text";
import { titleOf } from "./titles";
import type { TraceLine } from "./trace-facts";
import styles from "./TraceList.module.css";

const FILTERS = ["all", "answer", "review", "abstain", "problems"] as const;
const FIRST = 50;
const MOST = 1000;
const address = queryState({ only: oneOf(FILTERS, "all"), limit: integer(FIRST), day: text() });

/** The first and last moment of a day of the reader; nothing for an incomplete date. */
function within(day: string): { since?: string; until?: string } {
  const [since, until] = [new Date(`${day}T00:00`), new Date(`${day}T00:00`)];
  if (Number.isNaN(since.getTime())) return {};
  until.setDate(until.getDate() + 1);
  return { since: since.toISOString(), until: until.toISOString() };
}

export function TraceList() {
  const { only, limit, day } = address.read();
  const read = Math.min(MOST, Math.max(1, limit));
  const list = useResource(
    (signal) => api.get("/traces", { query: { limit: read, ...within(day) }, signal }),
    [read, day],
  );
  return (
    <Page
      title={t("trace.title")}
      lead={t(mayWholeTreeAs("admin") ? "trace.leadAll" : "trace.leadOwn")}
      actions={
        <Button icon="retry" onClick={list.reload}>
          {t("trace.reload")}
        </Button>
      }
    >
      <div class={styles.filters}>
        <Segmented
          label={t("trace.filter")}
          value={only}
          choices={FILTERS.map((filter) => ({ value: filter, text: t(`filter.${filter}`) }))}
          onChange={(filter) => address.set({ only: filter }, { replace: true })}
        />
        <Field
          type="date"
          label={t("trace.day")}
          value={day}
          onInput={(chosen) => address.set({ day: chosen }, { replace: true })}
        />
      </div>
      <Loaded resource={list} lines={8}>
        {({ traces }) => <Lines traces={traces} only={only} read={read} />}
      </Loaded>
    </Page>
  );
}

function Lines({ traces, only, read }: { traces: readonly TraceLine[]; only: (typeof FILTERS)[number]; read: number }) {
  const shown = traces.filter((line) =>
    only === "all" ? true : only === "problems" ? line.degraded.length > 0 : line.decision === only,
  );
  const more = traces.length >= read && read < MOST;
  if (traces.length === 0 && !address.read().day) {
    return (
      <Empty title={t("trace.none")} text={t("trace.noneHelp")}>
        <a href={href("ask")}>{t("trace.ask")}</a>
      </Empty>
    );
  }
  return (
    <div class={styles.lines}>
      {shown.length === 0 ? (
        <Empty title={t("trace.noneSuch")} text={t("trace.noneSuchHelp", { n: traces.length })}>
          <Button onClick={() => address.set({ only: "all", day: "" }, { replace: true })}>{t("trace.showAll")}</Button>
        </Empty>
      ) : (
        <ul class={styles.list}>
          {shown.map((line) => (
            <li key={line.trace_id}>
              <Line line={line} />
            </li>
          ))}
        </ul>
      )}
      {more && (
        <div>
          <Button onClick={() => address.set({ limit: Math.min(MOST, read * 4) }, { replace: true })}>
            {t("trace.more")}
          </Button>
        </div>
      )}
    </div>
  );
}

function Line({ line }: { line: TraceLine }) {
  return (
    <div class={styles.line}>
      <a class={styles.question} href={href("trace", { path: [line.trace_id] })}>
        {titleOf(line)}
      </a>
      <p class={styles.facts}>
        <Decision decision={line.decision} />
        {line.degraded.length > 0 && (
          <Badge tone="warn">{t("trace.degraded", { parts: partNames(line.degraded) })}</Badge>
        )}
        <span>{formatPercent(line.confidence)}</span>
        <span>{formatSeconds(line.seconds)}</span>
        {line.model_calls > 0 && <span>{t("trace.calls", { n: line.model_calls })}</span>}
        <span class={styles.when}>{formatDateTime(line.created_at)}</span>
      </p>
    </div>
  );
}
