/** Audit log: search, pages, and the proof that no line was changed. */
import { useEffect, useState } from "preact/hooks";
import { useResource } from "../../state/resource";
import { api } from "../../api/client";
import type { components } from "../../api/schema";
import { Badge, type Tone } from "../../parts/Badge";
import { Button } from "../../parts/Button";
import { DataTable } from "../../parts/DataTable";
import { Field } from "../../parts/Field";
import { Page } from "../../parts/Page";
import { Segmented } from "../../parts/Segmented";
import { Empty, Loaded } from "../../parts/States";
import { formatDateTime, formatNumber } from "../../text/texts";
import { address, DECISIONS, isFiltered, isReversed, NO_FILTERS, parametersOf, type AuditState } from "./state";
import { t } from "./text";
import { Verify } from "./Verify";
import styles from "./AuditView.module.css";

type Line = components["schemas"]["AuditLine"];
const TONES: Record<string, Tone> = { allowed: "good", denied: "bad", done: "neutral" };
const SHOWN_IDS = 2;

export default function AuditView() {
  const state = address.read();
  const parameters = parametersOf(state);
  const reversed = isReversed(state);
  const page = useResource(reversed ? null : (signal) => api.get("/audit", { query: parameters, signal }), [
    JSON.stringify(parameters),
  ]);
  return (
    <Page title={t("audit.title")} lead={t("audit.lead")}>
      <Verify />
      <Filters state={state} />
      {reversed ? (
        <Empty title={t("audit.reversed")} text={t("audit.reversedHelp")} alert>
          <Button onClick={() => address.set({ since: state.until, until: state.since, before: 0 })}>
            {t("audit.exchange")}
          </Button>
        </Empty>
      ) : (
        <Loaded resource={page} lines={8}>
          {({ lines, before }) => (
            <>
              {lines.length === 0 ? <Nothing filtered={isFiltered(state)} /> : <Lines lines={lines} />}
              <Pages lines={lines} from={state.before} before={before} />
            </>
          )}
        </Loaded>
      )}
    </Page>
  );
}

function Nothing({ filtered }: { filtered: boolean }) {
  if (!filtered) return <Empty title={t("audit.empty")} text={t("audit.emptyHelp")} />;
  return (
    <Empty title={t("audit.none")} text={t("audit.noneHelp")}>
      <Button onClick={() => address.set(NO_FILTERS)}>{t("audit.clear")}</Button>
    </Empty>
  );
}

interface PagesProps {
  lines: readonly Line[];
  /** The line number before which this page begins; 0 for the newest page. */
  from: number;
  /** That of the next page; null on the last one. */
  before: number | null;
}

function Pages({ lines, from, before }: PagesProps) {
  const [newest, oldest] = [lines[0]?.number, lines.at(-1)?.number];
  if (from === 0 && before === null) return null;
  return (
    <nav class={styles.pages} aria-label={t("audit.pages")}>
      {newest !== undefined && oldest !== undefined && (
        <span>{t("audit.range", { first: formatNumber(newest), last: formatNumber(oldest) })}</span>
      )}
      {from > 0 && <a href={address.link({ before: 0 })}>{t("audit.newest")}</a>}
      {before !== null && <a href={address.link({ before })}>{t("audit.older")}</a>}
      {before !== null && <a href={address.link({ before: 2 })}>{t("audit.first")}</a>}
    </nav>
  );
}

function Lines({ lines }: { lines: readonly Line[] }) {
  return (
    <DataTable
      label={t("audit.lines")}
      rows={lines}
      keyOf={(line) => line.number}
      columns={[
        { title: t("audit.number"), render: (line) => formatNumber(line.number) },
        { title: t("audit.at"), render: (line) => formatDateTime(line.at) },
        { title: t("audit.actor"), render: (line) => line.actor },
        { title: t("audit.action"), render: (line) => <code>{line.action}</code> },
        { title: t("audit.decision"), render: (line) => <Decision name={line.decision} /> },
        { title: t("audit.subjects"), render: (line) => <Ids ids={line.subjects} /> },
      ]}
    />
  );
}

function Decision({ name }: { name: string }) {
  const known = DECISIONS.find((decision) => decision !== "" && decision === name);
  return <Badge tone={TONES[name] ?? "neutral"}>{known ? t(`decision.${known}` as "decision.done") : name}</Badge>;
}

function Ids({ ids }: { ids: readonly string[] }) {
  const [whole, setWhole] = useState(false);
  const shown = whole ? ids : ids.slice(0, SHOWN_IDS);
  return (
    <span class={styles.ids}>
      {shown.map((id) => (
        <a key={id} href={address.link({ ...NO_FILTERS, subject: id })}>
          <code>{id}</code>
        </a>
      ))}
      {ids.length > shown.length && (
        <Button small kind="bare" aria-expanded={false} onClick={() => setWhole(true)}>
          {t("audit.more", { n: ids.length - shown.length })}
        </Button>
      )}
    </span>
  );
}

function Filters({ state }: { state: AuditState }) {
  const [draft, setDraft] = useState(state);
  useEffect(() => setDraft(state), [JSON.stringify({ ...state, before: 0 })]);
  const change = (part: Partial<AuditState>) => setDraft((before) => ({ ...before, ...part }));
  const search = (event: Event) => {
    event.preventDefault();
    address.set({ ...draft, before: 0 });
  };
  return (
    <form class={styles.filters} role="search" onSubmit={search}>
      <Field
        label={t("audit.actor")}
        hint={t("audit.actorHint")}
        value={draft.actor}
        maxLength={100}
        onInput={(actor) => change({ actor })}
      />
      <Field
        label={t("audit.action")}
        hint={t("audit.actionHint")}
        value={draft.action}
        maxLength={100}
        onInput={(action) => change({ action })}
      />
      <Field
        label={t("audit.subject")}
        hint={t("audit.subjectHint")}
        value={draft.subject}
        maxLength={200}
        onInput={(subject) => change({ subject })}
      />
      <Field type="date" label={t("audit.since")} value={draft.since} onInput={(since) => change({ since })} />
      <Field type="date" label={t("audit.until")} value={draft.until} onInput={(until) => change({ until })} />
      <Segmented
        label={t("audit.decision")}
        value={draft.decision}
        choices={DECISIONS.map((value) => ({
          value,
          text: value === "" ? t("audit.any") : t(`decision.${value}`),
        }))}
        onChange={(decision) => change({ decision })}
      />
      <div class={styles.buttons}>
        <Button kind="main" type="submit" icon="search">
          {t("audit.search")}
        </Button>
        {isFiltered(state) && <Button onClick={() => address.set(NO_FILTERS)}>{t("audit.clear")}</Button>}
      </div>
    </form>
  );
}
