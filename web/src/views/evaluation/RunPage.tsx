/** One run: its measures with intervals, its questions, or its differences from another run. */
import { useResource } from "../../state/resource";
import { href } from "../../state/router";
import { api } from "../../api/client";
import { DataTable } from "../../parts/DataTable";
import { Facts } from "../../parts/Facts";
import { Page } from "../../parts/Page";
import { Loaded } from "../../parts/States";
import { formatDateTime, formatNumber } from "../../text/texts";
import { Compared } from "./Compared";
import { Curve } from "./Curve";
import { directionOf } from "./measures";
import { Questions } from "./Questions";
import { Select } from "./Select";
import { address, PAGE, setOf, type Run } from "./state";
import { t } from "./text";
import styles from "./Evaluation.module.css";

/** Among how many of the newest runs others of the same set are offered; the most that the service lists. */
const OFFERED = 100;

export function RunPage({ id }: { id: string }) {
  const { against } = address.read();
  const resource = useResource((signal) => api.get("/evaluations/{run_id}", { path: { run_id: id }, signal }), [id]);
  return (
    <Page title={t("run.title")}>
      <p>
        <a href={href("evaluation")}>{t("run.back")}</a>
      </p>
      <Loaded resource={resource} lines={8}>
        {(run) => (
          <div class={styles.stack}>
            <Overview run={run} />
            <Other run={run} against={against} />
            {against ? (
              <Compared key={against} run={run} against={against} />
            ) : (
              <>
                <Measures run={run} />
                <Curve points={run.risk_coverage} />
                <Questions rows={run.rows} measures={Object.keys(run.measures)} />
              </>
            )}
          </div>
        )}
      </Loaded>
    </Page>
  );
}

function Overview({ run }: { run: Run }) {
  const settings = Object.entries(run.settings).map(([name, value]) => `${name}: ${value}`);
  const facts: [string, string][] = [
    [t("run.at"), formatDateTime(run.created_at)],
    [t("run.set"), setOf(run)],
    [t("run.version"), run.version],
    [t("run.questions"), formatNumber(run.questions)],
    [t("run.settings"), settings.join(" · ") || "–"],
  ];
  return <Facts facts={facts} wideLast />;
}

/** Chooses the run that this one is compared with. */
function Other({ run, against }: { run: Run; against: string }) {
  const list = useResource((signal) => api.get("/evaluations", { query: { limit: OFFERED }, signal }), []);
  return (
    <Loaded resource={list} lines={1}>
      {({ evaluations }) => {
        const others = evaluations.filter((other) => other.run_id !== run.run_id && setOf(other) === setOf(run));
        if (others.length === 0 && !against)
          return <p class={styles.small}>{t("compare.noOther", { n: evaluations.length })}</p>;
        const choices = others.map((other) => ({
          value: other.run_id,
          text: `${formatDateTime(other.created_at)} (${other.version})`,
        }));
        if (against && !others.some((other) => other.run_id === against))
          choices.unshift({ value: against, text: against });
        return (
          <Select
            label={t("compare.with")}
            value={against}
            choices={[{ value: "", text: t("compare.nothing") }, ...choices]}
            onChange={(value) => address.set({ against: value, shown: PAGE })}
          />
        );
      }}
    </Loaded>
  );
}

function Measures({ run }: { run: Run }) {
  return (
    <section class={styles.section} aria-labelledby="measures-title">
      <h2 id="measures-title">{t("run.measures")}</h2>
      <DataTable
        label={t("run.measures")}
        rows={Object.entries(run.measures)}
        keyOf={([name]) => name}
        columns={[
          { title: t("run.measure"), render: ([name]) => name },
          {
            title: t("run.value"),
            number: true,
            render: ([, estimate]) => estimate?.value.toFixed(3) ?? t("run.notJudged"),
          },
          {
            title: t("run.interval"),
            number: true,
            render: ([, estimate]) => (estimate ? `${estimate.low.toFixed(3)} – ${estimate.high.toFixed(3)}` : "–"),
          },
          { title: t("run.better"), render: ([name]) => t(`direction.${directionOf(name)}`) },
        ]}
      />
    </section>
  );
}
