/** Why an item waits; and approve, correct or skip it, with a note. A decision is final: the item leaves the queue. */
import { useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { announce } from "../../state/announce";
import { useShortcuts } from "../../state/shortcuts";
import { api } from "../../api/client";
import { asProblem, type Problem } from "../../api/problem";
import { Button } from "../../parts/Button";
import { Field } from "../../parts/Field";
import { ProblemText, StatementItems } from "../../parts/Statements";
import type { Statement } from "../../state/statements";
import { canApprove, type Deciding } from "./items";
import { t } from "./text";
import styles from "./Decisions.module.css";

const MAX_NOTE = 1000;
type Outcome = "approved" | "corrected" | "skipped";
export type Decide = (outcome: Outcome, request: () => Promise<unknown>) => void;

interface Props extends Deciding {
  /** For an answer: the hashes of the texts that an approval confirms. */
  hashes?: Record<string, string>;
  /** The button that corrects; it sends its request by `decide`. */
  correct: (note: string, decide: Decide) => ComponentChildren;
}

export function Decisions({ item, hashes, onDecided, onStale, correct }: Props) {
  const [note, setNote] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const path = { item_id: item.item_id };
  const decide: Decide = (outcome, request) => {
    if (busy) return;
    setBusy(true);
    setProblem(null);
    request().then(
      () => {
        announce(t(`done.${outcome}`));
        onDecided();
      },
      (error: unknown) => {
        const failure = asProblem(error);
        setBusy(false);
        setProblem(failure);
        // Decided elsewhere, or its passages changed: the item is shown as it is now.
        if (failure.kind === "conflict" || failure.kind === "invalid") onStale();
      },
    );
  };
  const approve = () =>
    decide("approved", () => api.post("/review/{item_id}/approve", { path, body: { note, content_hashes: hashes } }));
  const skip = () => decide("skipped", () => api.post("/review/{item_id}/skip", { path, body: { note } }));
  const approvable = canApprove(item);
  useShortcuts([
    { keys: "a", label: () => t("decide.approve"), run: () => approvable && approve() },
    { keys: "s", label: () => t("decide.skip"), run: skip },
  ]);
  return (
    <section class={styles.decisions} aria-label={t("decide.title")}>
      {problem && (
        <p class={styles.problem} role="alert">
          {t("decide.failed")} {problem.kind === "conflict" && t("decide.changed")} <ProblemText problem={problem} />
        </p>
      )}
      <Field
        label={t("decide.note")}
        hint={t(item.kind === "answer" ? "decide.noteAnswer" : "decide.noteDocument")}
        maxLength={MAX_NOTE}
        autocomplete="off"
        value={note}
        onInput={setNote}
      />
      <div class={styles.buttons}>
        <Button kind="main" icon="check" disabled={busy || !approvable} onClick={approve}>
          {t("decide.approve")}
        </Button>
        {correct(note, decide)}
        <Button kind="bare" disabled={busy} onClick={skip}>
          {t("decide.skip")}
        </Button>
      </div>
      {!approvable && <p class={styles.hint}>{t("decide.noProposal")}</p>}
    </section>
  );
}

/** Why the item waits; the sentences are the service's. */
export function Reasons({ reasons }: { reasons: readonly Statement[] }) {
  if (reasons.length === 0) return null;
  return (
    <section class={styles.section}>
      <h3>{t("item.reasons")}</h3>
      <ul class={styles.reasons}>
        <StatementItems statements={reasons} />
      </ul>
    </section>
  );
}
