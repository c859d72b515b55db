/** The changes that are not yet proposed: undo them, or propose them as a version. */
import { useId, useRef, useState } from "preact/hooks";
import { announce } from "../../state/announce";
import { api } from "../../api/client";
import { asProblem, type Problem } from "../../api/problem";
import { Button } from "../../parts/Button";
import { Failure } from "../../parts/States";
import { MOST_OPERATIONS, type Draft, type Operation } from "./operations";
import { misfitText, sentenceOf } from "./sentences";
import { address, discard, goToVersion, keepOperations, redoLast, undoLast } from "./state";
import { t } from "./text";
import styles from "./DraftPanel.module.css";

interface Props {
  version: string;
  operations: readonly Operation[];
  /** Operations that were undone, the next to redo last. */
  undone: readonly Operation[];
  misfit: Draft["misfit"];
}

const LONGEST_REASON = 2000;

export function DraftPanel({ version, operations, undone, misfit }: Props) {
  const id = useId();
  const [problem, setProblem] = useState<Problem | null>(null);
  const [working, setWorking] = useState(false);
  const heading = useRef<HTMLHeadingElement>(null);
  const { why } = address.read();

  function clear() {
    discard();
    announce(t("draft.undone", { n: 0 }));
    heading.current?.focus();
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
      <h2 id={`${id}-title`} ref={heading} tabIndex={-1}>
        {t("draft.title")}
      </h2>
      {operations.length === 0 && <p class={styles.hint}>{t("draft.empty")}</p>}
      {operations.length > 0 && (
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
          {operations.some(({ op }) => op === "split") && <p class={styles.hint}>{t("draft.split")}</p>}
          {operations.length >= MOST_OPERATIONS && <p role="status">{t("draft.full")}</p>}
        </>
      )}
      {(operations.length > 0 || undone.length > 0) && (
        <div class={styles.actions}>
          {misfit ? (
            <Button small icon="retry" onClick={() => keepOperations(misfit.index)}>
              {t("draft.undoFrom", { n: misfit.index + 1 })}
            </Button>
          ) : (
            <Button small aria-disabled={operations.length === 0} aria-keyshortcuts="Control+Z" onClick={undoLast}>
              {t("draft.undo")}
            </Button>
          )}
          {!misfit && (
            <Button small aria-disabled={undone.length === 0} aria-keyshortcuts="Control+Shift+Z" onClick={redoLast}>
              {t("draft.redo")}
            </Button>
          )}
          <Button small kind="bare" onClick={clear}>
            {t("draft.discard")}
          </Button>
        </div>
      )}
      {operations.length > 0 && (
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
      )}
      {problem && <Failure problem={problem} />}
    </section>
  );
}
