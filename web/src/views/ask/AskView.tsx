/** Ask: questions and answers in the middle, the open source beside them, the question below. */
import { useEffect, useRef } from "preact/hooks";
import { useShortcuts } from "../../app/shortcuts";
import { route } from "../../app/router";
import { Failure, Loading } from "../../parts/States";
import { Composer } from "./Composer";
import { address, settingsNow } from "./state";
import { t } from "./text";
import { TurnCard } from "./TurnCard";
import { newConversationId, reset, show, shown } from "./turns";
import styles from "./AskView.module.css";

export default function AskView() {
  const box = useRef<HTMLTextAreaElement>(null);
  const { c, q } = address.read();
  useFollowAddress();
  useShortcuts([
    { keys: "/", label: () => t("ask.focus"), run: () => box.current?.focus() },
    { keys: "n", label: () => t("ask.new"), run: startAgain },
  ]);
  const { turns, loading, problem } = shown.value;
  const empty = turns.length === 0 && !loading && !problem;
  return (
    <div class={styles.view}>
      <div class={styles.thread}>
        {empty && !q && !c && (
          <header class={styles.welcome}>
            <h1>{t("ask.title")}</h1>
            <p>{t("ask.lead")}</p>
          </header>
        )}
        {!empty && <h1 class="quiet">{t("ask.title")}</h1>}
        {loading && <Loading />}
        {problem && <Failure problem={problem} onRetry={() => void show(c, q, settingsNow())} />}
        <ol class={styles.turns}>
          {turns.map((turn) => (
            <li key={turn.id}>
              <TurnCard turn={turn} last={turn === turns.at(-1)} />
            </li>
          ))}
        </ol>
      </div>
      <Composer boxRef={box} />
    </div>
  );
}

function startAgain(): void {
  address.set({ c: "", q: "", source: "" });
}

/** The address says what is shown: a question without a conversation begins one. */
function useFollowAddress(): void {
  const { view } = route.value;
  const { c, q } = address.read();
  useEffect(() => {
    if (view !== "ask") return;
    if (!c && !q) reset();
    else if (!c) address.set({ c: newConversationId() }, { replace: true });
    else void show(c, q, settingsNow());
  }, [view, c, q]);
}
