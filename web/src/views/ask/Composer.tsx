/** The box for the question. Enter asks; while an answer is written, the button stops it. */
import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Button } from "../../parts/Button";
import { pointsIn } from "../../parts/code-points";
import { Scope } from "./Scope";
import { address, linkedQuestion, settingsNow } from "./state";
import { t } from "./text";
import { ask, newConversationId, shown, stop } from "./turns";
import styles from "./Composer.module.css";

const MAX_POINTS = 10_000;

export function Composer({ boxRef }: { boxRef: RefObject<HTMLTextAreaElement | null> }) {
  const [draft, setDraft] = useState("");
  const { turns, loading } = shown.value;
  const busy = turns.at(-1)?.state === "running";
  const isThere = loading || turns.some((turn) => turn.question === linkedQuestion());
  const linked = isThere ? "" : linkedQuestion();
  useEffect(() => setDraft(linked), [linked]);
  const tooLong = pointsIn(draft) > MAX_POINTS;
  const label = turns.length ? t("ask.followUp") : t("ask.placeholder");

  function submit(event?: Event) {
    event?.preventDefault();
    const question = draft.trim();
    if (!question || tooLong || busy) return;
    setDraft("");
    const { c } = address.read();
    if (c && c === shown.value.conversation) {
      void ask(question, settingsNow());
      address.set({ q: question, source: "" });
    } else address.set({ q: question, c: newConversationId(), source: "" });
  }

  return (
    <form class={styles.composer} onSubmit={submit}>
      {linked && (
        <p id="ask-linked" class={styles.linked}>
          {t("ask.linked")}
        </p>
      )}
      <Scope />
      <div class={styles.box}>
        <textarea
          ref={boxRef}
          class={styles.text}
          aria-label={t("ask.question")}
          aria-describedby="ask-linked ask-hint"
          placeholder={label}
          rows={1}
          value={draft}
          onInput={(event) => setDraft(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
          }}
        />
        {busy ? (
          <Button icon="stop" onClick={stop}>
            {t("ask.stop")}
          </Button>
        ) : (
          <Button kind="main" icon="send" type="submit" disabled={tooLong}>
            {t("ask.send")}
          </Button>
        )}
      </div>
      <p id="ask-hint" class={tooLong ? styles.error : styles.hint} role={tooLong ? "alert" : undefined}>
        {tooLong ? t("ask.tooLong", { n: MAX_POINTS }) : t("ask.hint")}
      </p>
    </form>
  );
}
