/** Was the answer right? A vote, which its voter can change or take back, and a reason in a dialog. */
import { useState } from "preact/hooks";
import { announce } from "../../state/announce";
import { asProblem, type Problem } from "../../api/problem";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { Field } from "../../parts/Field";
import { ProblemText } from "../../parts/Statements";
import { t as common } from "../../text/common";
import { t } from "./text";
import type { Turn, Vote } from "./turn";
import { vote } from "./turns";
import styles from "./Feedback.module.css";

type Thumbs = "up" | "down";
const MAX_REASON = 1000;

export function Feedback({ turn }: { turn: Turn }) {
  const { thumbs, reason } = turn.vote;
  const [writing, setWriting] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);

  async function send(next: Vote): Promise<boolean> {
    setProblem(null);
    try {
      await vote(turn, next);
      return true;
    } catch (error) {
      setProblem(asProblem(error));
      return false;
    }
  }

  async function press(pressed: Thumbs) {
    const next = pressed === thumbs ? null : pressed;
    if (await send({ thumbs: next, reason: "" })) announce(t(next ? "feedback.counted" : "feedback.takenBack"));
  }

  async function explain(words: string) {
    if (!(await send({ thumbs, reason: words }))) return;
    setWriting(false);
    announce(t("feedback.thanks"));
  }

  return (
    <div class={styles.feedback} role="group" aria-label={t("feedback.label")}>
      <Thumb thumbs="up" vote={thumbs} onPress={press} />
      <Thumb thumbs="down" vote={thumbs} onPress={press} />
      {/* Its place is kept before there is a vote, so that nothing moves. */}
      <span class={thumbs ? undefined : styles.unvoted}>
        <Button kind="bare" small aria-haspopup="dialog" disabled={!thumbs} onClick={() => setWriting(true)}>
          {t("feedback.why")}
        </Button>
      </span>
      {problem && !writing && <Sentence problem={problem} />}
      {writing && thumbs && (
        <ReasonDialog
          thumbs={thumbs}
          reason={reason}
          problem={problem}
          onSend={explain}
          onClose={() => setWriting(false)}
        />
      )}
    </div>
  );
}

interface ThumbProps {
  thumbs: Thumbs;
  vote: Thumbs | null;
  onPress: (thumbs: Thumbs) => Promise<void>;
}

function Thumb({ thumbs, vote: current, onPress }: ThumbProps) {
  return (
    <Button
      kind="bare"
      small
      icon={thumbs === "up" ? "up" : "thumbDown"}
      label={t(`feedback.${thumbs}`)}
      aria-pressed={current === thumbs}
      onClick={() => void onPress(thumbs)}
    />
  );
}

interface ReasonProps {
  thumbs: Thumbs;
  reason: string;
  problem: Problem | null;
  onSend: (words: string) => Promise<void>;
  onClose: () => void;
}

function ReasonDialog({ thumbs, reason, problem, onSend, onClose }: ReasonProps) {
  const [words, setWords] = useState(reason);
  return (
    <Dialog title={t("feedback.label")} open onClose={onClose}>
      <form
        class={styles.reason}
        onSubmit={(event) => {
          event.preventDefault();
          void onSend(words.trim());
        }}
      >
        <Field
          label={t(`feedback.why.${thumbs}`)}
          hint={t("feedback.whoReads")}
          value={words}
          onInput={setWords}
          maxLength={MAX_REASON}
        />
        {problem && <Sentence problem={problem} />}
        <div class={styles.buttons}>
          <Button onClick={onClose}>{t("feedback.cancel")}</Button>
          <Button kind="main" type="submit">
            {t("feedback.send")}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function Sentence({ problem }: { problem: Problem }) {
  return (
    <span class={styles.problem} role="alert">
      <ProblemText problem={problem} otherwise={common("state.unreachable")} />
    </span>
  );
}
