/** Was the answer right? A vote, and then a reason in the reader's words. The last vote counts. */
import { useRef, useState } from "preact/hooks";
import { announce } from "../../app/announce";
import { api } from "../../api/client";
import { asProblem, type Problem } from "../../api/problem";
import { Button } from "../../parts/Button";
import { Field } from "../../parts/Field";
import { t as common } from "../../text/common";
import { t } from "./text";
import styles from "./Feedback.module.css";

type Thumbs = "up" | "down";
const MAX_REASON = 1000;
/** What takes the place of the form takes its focus. */
const focus = (element: HTMLElement | null) => element?.focus();

export function Feedback({ traceId }: { traceId: string }) {
  const [vote, setVote] = useState<Thumbs | null>(null);
  const [writing, setWriting] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const reason = useRef<HTMLInputElement>(null);

  async function send(thumbs: Thumbs, words?: string) {
    setProblem(null);
    try {
      await api.post("/chat/feedback", { body: { trace_id: traceId, thumbs, reason: words || null } });
      setVote(thumbs);
      setWriting(words === undefined);
      announce(words === undefined ? t("feedback.counted") : t("feedback.thanks"));
    } catch (error) {
      setProblem(asProblem(error));
    }
  }

  return (
    <div class={styles.feedback} role="group" aria-label={t("feedback.label")}>
      <Button
        kind="bare"
        small
        icon="up"
        label={t("feedback.up")}
        aria-pressed={vote === "up"}
        onClick={() => void send("up")}
      />
      <Button
        kind="bare"
        small
        icon="thumbDown"
        label={t("feedback.down")}
        aria-pressed={vote === "down"}
        onClick={() => void send("down")}
      />
      {writing && vote && (
        <form
          class={styles.reason}
          onSubmit={(event) => {
            event.preventDefault();
            void send(vote, reason.current?.value.trim() ?? "");
          }}
        >
          <Field label={t(`feedback.why.${vote}`)} inputRef={reason} maxLength={MAX_REASON} />
          <Button type="submit">{t("feedback.send")}</Button>
        </form>
      )}
      {vote && !writing && (
        <span class={styles.thanks} tabIndex={-1} ref={focus}>
          {t("feedback.thanks")}
        </span>
      )}
      {problem && (
        <span class={styles.problem} role="alert">
          {problem.detail || common("state.unreachable")}
        </span>
      )}
    </div>
  );
}
