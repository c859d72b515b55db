/** Why a document is not among the results: its best passage, and where the search left it. */
import { useState } from "preact/hooks";
import type { components } from "../../api/schema";
import { href } from "../../state/router";
import { Button } from "../../parts/Button";
import { Field } from "../../parts/Field";
import { Said } from "../../parts/Statements";
import { StageTable } from "./StageTable";
import { stagesOfExplanation } from "./stages";
import { address, documentIdIn, MOST_WHY } from "./state";
import { t } from "./text";
import styles from "./WhyNot.module.css";

type Response = components["schemas"]["SearchResponse"];

export function WhyNot({ response, why }: { response: Response; why: readonly string[] }) {
  const [pasted, setPasted] = useState("");
  const [error, setError] = useState("");
  const add = (event: Event) => {
    event.preventDefault();
    const id = documentIdIn(pasted);
    if (!id) return setError(t("why.paste"));
    if (why.length >= MOST_WHY) return setError(t("why.most", { n: MOST_WHY }));
    setError("");
    setPasted("");
    if (!why.includes(id)) address.set({ why: [...why, id] }, { replace: true });
  };
  return (
    <section class={styles.why} aria-labelledby="why-title">
      <h2 id="why-title">{t("why.title")}</h2>
      <form class={styles.form} onSubmit={add}>
        <Field
          label={t("why.document")}
          hint={t("why.hint")}
          error={error || undefined}
          value={pasted}
          autocomplete="off"
          onInput={setPasted}
        />
        <Button type="submit">{t("why.explain")}</Button>
      </form>
      {why.length > 0 && (
        <ul class={styles.list}>
          {why.map((id) => (
            <li key={id}>
              <Answer response={response} id={id} />
              <Button
                small
                kind="bare"
                icon="close"
                label={t("why.remove", { id })}
                onClick={() => address.set({ why: why.filter((other) => other !== id) }, { replace: true })}
              />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Answer({ response, id }: { response: Response; id: string }) {
  const position = response.results.findIndex((hit) => hit.chunk_id.startsWith(`${id}:`)) + 1;
  const absence = response.metrics.absent.find((absent) => absent.document_id === id);
  return (
    <div class={styles.answer}>
      <p>
        <a href={href("documents", { path: [id] })}>
          <code>{id}</code>
        </a>
      </p>
      {position > 0 && <p>{t("why.present", { n: position })}</p>}
      {absence && (
        <p>
          <Said text={absence.reason} statements={absence.reason_statements} />
        </p>
      )}
      {absence?.explanation && (
        <div class={styles.stages}>
          <StageTable stages={stagesOfExplanation(absence.explanation)} label={t("why.stages")} />
          {absence.explanation.terms.length > 0 && (
            <p class={styles.small}>{t("why.terms", { words: absence.explanation.terms.join(", ") })}</p>
          )}
          {absence.explanation.expansions.length > 0 && (
            <p class={styles.small}>{t("why.expansions", { words: absence.explanation.expansions.join(", ") })}</p>
          )}
        </div>
      )}
    </div>
  );
}
