/** Starts a run over judged questions, from a file or pasted. */
import { useId, useRef, useState } from "preact/hooks";
import { api } from "../../api/client";
import { asProblem, type Problem } from "../../api/problem";
import { Button } from "../../parts/Button";
import { Field } from "../../parts/Field";
import { Failure } from "../../parts/States";
import { announce } from "../../state/announce";
import { EXAMPLE, judgedOf } from "./judged";
import { t } from "./text";
import styles from "./Evaluation.module.css";

export function StartRun({ onStarted }: { onStarted: () => void }) {
  const [name, setName] = useState("");
  const [content, setContent] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const id = useId();
  const { questions, mistake } = judgedOf(content);
  const n = questions.length;
  const start = async () => {
    setBusy(true);
    setProblem(null);
    try {
      await api.post("/evaluations", { body: { dataset: name.trim(), questions } });
      announce(t("start.started"));
      setContent("");
      onStarted();
    } catch (error) {
      setProblem(asProblem(error));
    }
    setBusy(false);
  };
  const choose = async (file: File) => {
    setContent(await file.text());
    if (!name) setName(file.name.replace(/\.\w+$/, ""));
  };
  return (
    <details class={styles.start}>
      <summary>{t("start.title")}</summary>
      <div class={styles.section}>
        <p class={styles.small}>{t("start.help")}</p>
        <pre class={styles.example}>{EXAMPLE}</pre>
        <Field label={t("start.name")} value={name} maxLength={200} autocomplete="off" onInput={setName} />
        <div class={styles.pasted}>
          <label for={id}>{t("start.questions")}</label>
          <textarea
            id={id}
            rows={6}
            spellcheck={false}
            value={content}
            aria-describedby={`${id}-count`}
            aria-invalid={mistake > 0 || undefined}
            onInput={(event) => setContent(event.currentTarget.value)}
          />
          <p id={`${id}-count`} class={styles.small} role="status">
            {mistake > 0 ? t("start.mistake", { n: mistake }) : t("start.count", { n })}
          </p>
        </div>
        <p class={styles.row}>
          <FileButton onChosen={(file) => void choose(file)} />
          <Button kind="main" disabled={busy || !name.trim() || n === 0 || mistake > 0} onClick={() => void start()}>
            {t("start.start")}
          </Button>
        </p>
        {problem && <Failure problem={problem} />}
      </div>
    </details>
  );
}

function FileButton({ onChosen }: { onChosen: (file: File) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button icon="plus" onClick={() => input.current?.click()}>
        {t("start.file")}
      </Button>
      <input
        ref={input}
        type="file"
        hidden
        accept=".jsonl,.json,.txt"
        onChange={(event) => {
          const [file] = event.currentTarget.files ?? [];
          event.currentTarget.value = "";
          if (file) onChosen(file);
        }}
      />
    </>
  );
}
