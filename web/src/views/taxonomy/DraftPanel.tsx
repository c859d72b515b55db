/** The changes that are not yet proposed: undo them, or propose them as a version. */
import { useId, useState } from "preact/hooks";
import { announce } from "../../app/announce";
import { api } from "../../api/client";
import { asProblem, type Problem } from "../../api/problem";
import { Button } from "../../parts/Button";
import { Failure } from "../../parts/States";
import { MOST_OPERATIONS, type Draft, type Operation } from "./operations";
import { misfitText, sentenceOf } from "./sentences";
import { address, discard, goToVersion, keepOperations } from "./state";
import { t } from "./text";
import styles from "./DraftPanel.module.css";

interface Props {
  version: string;
  operations: readonly Operation[];
  misfit: Draft["misfit"];
}

const LONGEST_REASON = 2000;

export function DraftPanel({ version, operations, misfit }: Props) {
  const id = useId();
  const [problem, setProblem] = useState<Problem | null>(null);
  const [working, setWorking] = useState(false);
  const { why } = address.read();

  function keep(count: number) {
    keepOperations(count);
    announce(t("draft.undone", { n: count }));
  }
  async function propose(event: Event) {
    event.preventDefault();
    setWorking(true);
    setProblem(null);
    try {
      const proposed = await api.post("/taxonomy", {
        body: { operations: [...operations], rationale: why, parent: version },
      });
      announce(t("draft.proposed", { version: proposed.version }));
      goToVersion(proposed.version);
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setWorking(false);
    }
  }

  return (
    <section class={styles.draft} aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>{t("draft.title")}</h2>
      {operations.length === 0 ? (
        <p class={styles.hint}>{t("draft.empty")}</p>
      ) : (
        <>
          <p class={styles.hint}>{t("draft.count", { n: operations.length })}</p>
          <ol class={styles.list}>
            {operations.map((operation, index) => (
              <li key={index} class={misfit && index >= misfit.index ? styles.misfit : undefined}>
                {sentenceOf(operation)}
              </li>
            ))}
          </ol>
          {misfit && (
            <p class={styles.error} role="alert">
              {t("draft.misfit", { n: misfit.index + 1, why: misfitText(misfit.error) })}
            </p>
          )}
          {operations.length >= MOST_OPERATIONS && <p role="status">{t("draft.full")}</p>}
          <div class={styles.actions}>
            {misfit ? (
              <Button small icon="retry" onClick={() => keep(misfit.index)}>
                {t("draft.undoFrom", { n: misfit.index + 1 })}
              </Button>
            ) : (
              <Button small icon="retry" onClick={() => keep(operations.length - 1)}>
                {t("draft.undo")}
              </Button>
            )}
            <Button small kind="bare" onClick={discard}>
              {t("draft.discard")}
            </Button>
          </div>
          <form class={styles.form} onSubmit={(event) => void propose(event)}>
            <label for={id}>{t("draft.why")}</label>
            <textarea
              id={id}
              rows={3}
              maxLength={LONGEST_REASON}
              value={why}
              onInput={(event) => address.set({ why: event.currentTarget.value }, { replace: true })}
            />
            <Button kind="main" type="submit" disabled={working || misfit !== null}>
              {t("draft.propose")}
            </Button>
          </form>
        </>
      )}
      {problem && <Failure problem={problem} />}
    </section>
  );
}
