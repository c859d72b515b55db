/** The kept runs in pages, with the plots of one set. */
import { useResource } from "../../state/resource";
import { href } from "../../state/router";
import { api } from "../../api/client";
import { CopyButton } from "../../parts/CopyButton";
import { DataTable } from "../../parts/DataTable";
import { Empty, Loaded } from "../../parts/States";
import { formatDateTime, formatNumber } from "../../text/texts";
import { Plots } from "./Plots";
import { address, PAGE, setOf, type RunLine } from "./state";
import { t } from "./text";
import styles from "./Evaluation.module.css";

const COMMAND = "dtrag eval answers DIR --keep";

export const linkTo = (run: string, against?: string): string =>
  href("evaluation", { path: [run], query: { against } });

/** Read again when another run has `ended`. */
export function RunList({ ended }: { ended: number }) {
  const { after } = address.read();
  const page = useResource(
    // One more than is shown says whether there is a next page.
    (signal) => api.get("/evaluations", { query: { limit: PAGE + 1, after: after || undefined }, signal }),
    [after, ended],
  );
  return (
    <Loaded resource={page} lines={8}>
      {({ evaluations }) => {
        const runs = evaluations.slice(0, PAGE);
        const last = evaluations.length > PAGE ? runs.at(-1)?.run_id : undefined;
        return (
          <div class={styles.stack}>
            {runs.length === 0 && (after ? <Empty title={t("list.noOlder")} /> : <Nothing />)}
            {runs.length > 0 && (
              <>
                <Plots runs={runs} />
                <section class={styles.section} aria-labelledby="runs-title">
                  <h2 id="runs-title">{t("list.title")}</h2>
                  <Runs runs={runs} />
                </section>
              </>
            )}
            {(after || last) && (
              <nav class={styles.row} aria-label={t("list.pages")}>
                {after && <a href={address.link({ after: "" })}>{t("list.newest")}</a>}
                {last && <a href={address.link({ after: last })}>{t("list.older")}</a>}
              </nav>
            )}
          </div>
        );
      }}
    </Loaded>
  );
}

function Nothing() {
  return (
    <Empty title={t("list.empty")} text={t("list.emptyHelp")}>
      <code>{COMMAND}</code>
      <CopyButton text={COMMAND} />
    </Empty>
  );
}

function Runs({ runs }: { runs: readonly RunLine[] }) {
  return (
    <DataTable
      label={t("list.title")}
      rows={runs}
      keyOf={(run) => run.run_id}
      columns={[
        { title: t("run.at"), render: (run) => <a href={linkTo(run.run_id)}>{formatDateTime(run.created_at)}</a> },
        { title: t("run.set"), render: setOf },
        { title: t("run.version"), render: (run) => run.version },
        { title: t("run.questions"), number: true, render: (run) => formatNumber(run.questions) },
        { title: t("run.measures"), render: (run) => <Values run={run} /> },
        { title: t("run.compare"), render: (run) => <Previous run={run} runs={runs} /> },
      ]}
    />
  );
}

function Values({ run }: { run: RunLine }) {
  const judged = Object.entries(run.measures).flatMap(([name, estimate]) => (estimate ? [{ name, estimate }] : []));
  if (judged.length === 0) return <>–</>;
  return (
    <ul class={styles.values}>
      {judged.map(({ name, estimate }) => (
        <li key={name}>
          {name} <strong>{estimate.value.toFixed(3)}</strong>
        </li>
      ))}
    </ul>
  );
}

function Previous({ run, runs }: { run: RunLine; runs: readonly RunLine[] }) {
  const previous = runs.slice(runs.indexOf(run) + 1).find((other) => setOf(other) === setOf(run));
  if (!previous) return <>–</>;
  const label = `${t("run.comparePrevious")}: ${t("run.compareLabel", { at: formatDateTime(run.created_at) })}`;
  return (
    <a href={linkTo(run.run_id, previous.run_id)} aria-label={label}>
      {t("run.comparePrevious")}
    </a>
  );
}
