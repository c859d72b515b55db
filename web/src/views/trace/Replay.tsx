/** Gives the answer again with what was recorded of then, or saves it with its evidence as a signed file. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { asProblem } from "../../api/problem";
import { Button } from "../../parts/Button";
import { Field } from "../../parts/Field";
import { Failure } from "../../parts/States";
import { announce } from "../../state/announce";
import { saveBundle, SavedBundle } from "./SavedBundle";
import { Replayed, verdictOf } from "./Replayed";
import { t } from "./text";
import type { Trace } from "./trace-facts";
import styles from "./TracePage.module.css";

export function Replay({ trace }: { trace: Trace }) {
  const { trace_id } = trace;
  const [question, setQuestion] = useState("");
  const [running, setRunning] = useState(false);
  const [outcome, setOutcome] = useState<ComponentChildren>(null);
  const run = async (work: () => Promise<ComponentChildren>) => {
    setRunning(true);
    setOutcome(null);
    try {
      setOutcome(await work());
    } catch (error) {
      setOutcome(<Failure problem={asProblem(error)} />);
    }
    setRunning(false);
  };
  const request = () => ({ path: { trace_id }, body: { question: question.trim() || undefined } });
  const replay = async () => {
    const replayed = await api.post("/traces/{trace_id}/replay", request());
    announce(t(verdictOf(replayed)));
    return <Replayed replayed={replayed} />;
  };
  const save = async () => {
    const saved = await saveBundle(request());
    announce(t("bundle.saved", { name: saved.name }));
    return <SavedBundle saved={saved} />;
  };
  const missing = !trace.question && !question.trim();
  return (
    <>
      <p class={styles.hint}>{t("replay.help")}</p>
      {!trace.question && (
        <Field
          label={t("replay.question")}
          hint={t("replay.questionHelp")}
          value={question}
          maxLength={2000}
          autocomplete="off"
          onInput={setQuestion}
        />
      )}
      <p class={styles.row}>
        <Button icon="history" disabled={running || missing} onClick={() => void run(replay)}>
          {t(running ? "replay.running" : "replay.run")}
        </Button>
        <Button icon="check" disabled={running} onClick={() => void run(save)}>
          {t("bundle.save")}
        </Button>
      </p>
      {outcome}
    </>
  );
}
