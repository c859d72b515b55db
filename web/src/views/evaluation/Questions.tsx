/** The questions of a run, the worst first, with filters that the address holds. */
import { Button } from "../../parts/Button";
import { Field } from "../../parts/Field";
import { Empty } from "../../parts/States";
import { worstFirst } from "./measures";
import { Question } from "./Question";
import { Select } from "./Select";
import { address, PAGE, type Row } from "./state";
import { t } from "./text";
import styles from "./Evaluation.module.css";

export function Questions({ rows, measures }: { rows: readonly Row[]; measures: readonly string[] }) {
  const { measure, words, faults, shown } = address.read();
  const matching = worstFirst(rows, { measure, words, faults });
  const clear = () => address.set({ measure: "", words: "", faults: false, shown: PAGE });
  return (
    <section class={styles.section} aria-labelledby="questions-title">
      <h2 id="questions-title">{t("questions.title")}</h2>
      <div class={styles.filters}>
        <Field
          label={t("questions.words")}
          type="search"
          value={words}
          onInput={(value) => address.set({ words: value, shown: PAGE }, { replace: true })}
        />
        <Select
          label={t("questions.measure")}
          value={measure}
          choices={[{ value: "", text: t("questions.all") }, ...measures.map((name) => ({ value: name, text: name }))]}
          onChange={(value) => address.set({ measure: value, shown: PAGE }, { replace: true })}
        />
        <label class={styles.check}>
          <input
            type="checkbox"
            checked={faults}
            onChange={(event) => address.set({ faults: event.currentTarget.checked, shown: PAGE }, { replace: true })}
          />
          {t("questions.faults")}
        </label>
      </div>
      <p class={styles.small} role="status">
        {t("questions.count", { n: matching.length, all: rows.length })}
      </p>
      {rows.length === 0 && <Empty title={t("questions.noneAtAll")} />}
      {rows.length > 0 && matching.length === 0 && (
        <Empty title={t("questions.none")}>
          <Button onClick={clear}>{t("questions.clear")}</Button>
        </Empty>
      )}
      <ul class={styles.questions}>
        {matching.slice(0, shown).map((row) => (
          <li key={`${row.id} ${row.question}`}>
            <Question row={row} />
          </li>
        ))}
      </ul>
      <More shown={shown} all={matching.length} />
    </section>
  );
}

export function More({ shown, all }: { shown: number; all: number }) {
  if (all <= shown) return null;
  return (
    <div>
      <Button onClick={() => address.set({ shown: shown + PAGE }, { replace: true })}>{t("questions.more")}</Button>
    </div>
  );
}
