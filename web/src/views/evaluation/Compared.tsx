/** A run against an earlier one: the questions that changed, then differences per measure. */
import { useResource } from "../../state/resource";
import { api } from "../../api/client";
import { Badge, type Tone } from "../../parts/Badge";
import { Button } from "../../parts/Button";
import { DataTable } from "../../parts/DataTable";
import { Empty, Loaded } from "../../parts/States";
import { compareRuns, type Change, type ChangedQuestion } from "./measures";
import { AskAgain, Details } from "./Question";
import { More } from "./Questions";
import { address, type Run } from "./state";
import { t } from "./text";
import styles from "./Evaluation.module.css";

const TONES: Record<Change["verdict"], Tone> = { better: "good", worse: "bad", same: "neutral", different: "neutral" };
const signed = (value: number): string => `${value > 0 ? "+" : ""}${value.toFixed(3)}`;

export function Compared({ run, against }: { run: Run; against: string }) {
  const other = useResource(
    (signal) => api.get("/evaluations/{run_id}", { path: { run_id: against }, signal }),
    [against],
  );
  return (
    <section class={styles.section} aria-labelledby="compare-title">
      <h2 id="compare-title">{t("compare.title")}</h2>
      <Loaded resource={other} lines={6}>
        {(before) => <Differences run={run} before={before} />}
      </Loaded>
    </section>
  );
}

function Differences({ run, before }: { run: Run; before: Run }) {
  const end = <Button onClick={() => address.set({ against: "" })}>{t("compare.end")}</Button>;
  if (run.kind !== before.kind)
    return (
      <Empty title={t("compare.otherKind")} text={t("compare.otherKindHelp")}>
        {end}
      </Empty>
    );
  const { measures, changed, matched, unmatched } = compareRuns(run, before);
  if (matched === 0) return <Empty title={t("compare.noCommon")}>{end}</Empty>;
  const { shown } = address.read();
  return (
    <div class={styles.stack}>
      <p class={styles.small}>{t("compare.method", { n: matched })}</p>
      {unmatched > 0 && <p class={styles.small}>{t("compare.unmatched", { n: unmatched })}</p>}
      <section class={styles.section} aria-labelledby="changed-title">
        <h3 id="changed-title">{t("compare.changed")}</h3>
        {changed.length === 0 && <p>{t("compare.unchanged")}</p>}
        <ul class={styles.questions}>
          {changed.slice(0, shown).map((question) => (
            <li key={`${question.now.id} ${question.now.question}`}>
              <Changed question={question} />
            </li>
          ))}
        </ul>
        <More shown={shown} all={changed.length} />
      </section>
      <MeasureChanges measures={measures} />
    </div>
  );
}

function MeasureChanges({ measures }: { measures: readonly Change[] }) {
  return (
    <DataTable
      label={t("run.measures")}
      rows={measures}
      keyOf={({ measure }) => measure}
      columns={[
        { title: t("run.measure"), render: ({ measure }) => measure },
        { title: t("question.before"), number: true, render: ({ before }) => before.toFixed(3) },
        { title: t("question.now"), number: true, render: ({ now }) => now.toFixed(3) },
        { title: t("compare.difference"), number: true, render: ({ difference }) => signed(difference) },
        {
          title: t("compare.verdict"),
          render: ({ verdict }) => <Badge tone={TONES[verdict]}>{t(`verdict.${verdict}`)}</Badge>,
        },
      ]}
    />
  );
}

function Changed({ question }: { question: ChangedQuestion }) {
  const { now, before, changes, gain } = question;
  const verdict = gain < 0 ? "worse" : gain > 0 ? "better" : "different";
  return (
    <details class={styles.question}>
      <summary>
        <span class={styles.words}>{now.question}</span> <Badge tone={TONES[verdict]}>{t(`verdict.${verdict}`)}</Badge>
        <span class={styles.small}>
          {changes.map(({ measure, difference }) => `${measure} ${signed(difference)}`).join(" · ")}
        </span>
      </summary>
      <div class={styles.sides}>
        <section>
          <h4>{t("question.before")}</h4>
          <Details row={before} />
        </section>
        <section>
          <h4>{t("question.now")}</h4>
          <Details row={now} />
        </section>
      </div>
      <AskAgain question={now.question} />
    </details>
  );
}
