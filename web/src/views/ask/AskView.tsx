/** Ask: questions and answers in the middle, the open source beside them, the question below. */
import { useEffect, useRef, useState } from "preact/hooks";
import { recoveries } from "../../state/connection";
import { route } from "../../state/router";
import { mayAs } from "../../state/session";
import { useShortcuts } from "../../state/shortcuts";
import { useMedia } from "../../state/use-media";
import { Button } from "../../parts/Button";
import { Failure, Loading } from "../../parts/States";
import { Composer } from "./Composer";
import { ConversationsBeside, ConversationsDrawer, SEARCH_ID } from "./Conversations";
import { currentSource, OpenSource } from "./OpenSource";
import { address, linkedQuestion, settingsNow } from "./state";
import { t } from "./text";
import { TurnCard } from "./TurnCard";
import { Welcome } from "./Welcome";
import { newConversationId, reset, retry, show, shown } from "./turns";
import styles from "./AskView.module.css";

/** Room for the answer and its source beside each other. */
const WIDE = "(min-width: 76rem)";
/** Room for the conversations beside the answer; and beside its source, too. */
const TALKS = "(min-width: 64rem)";
const ALL = "(min-width: 104rem)";

export default function AskView() {
  const box = useRef<HTMLTextAreaElement>(null);
  const [talks, setTalks] = useState(false);
  const wide = useMedia(WIDE);
  const open = currentSource();
  const besideSource = useMedia(ALL);
  const talksBeside = useMedia(TALKS) && (besideSource || !open) && mayAs("reader");
  useFollowAddress();
  useRetryWhenBack();
  useShortcuts([
    { keys: "/", label: () => t("ask.focus"), run: () => box.current?.focus() },
    { keys: "n", label: () => t("ask.new"), run: startAgain },
    ...(mayAs("reader") ? [{ keys: "c", label: () => t("talks.title"), run: showTalks }] : []),
  ]);
  function showTalks() {
    const search = document.getElementById(SEARCH_ID);
    if (talksBeside) search?.focus();
    else setTalks(true);
  }
  const columns = [styles.view, open && wide && styles.beside, talksBeside && styles.talks];
  return (
    <div class={columns.filter(Boolean).join(" ")}>
      <div class={styles.talk}>
        <div class={styles.tools}>
          {mayAs("reader") && !talksBeside && (
            <Button kind="bare" small icon="history" aria-haspopup="dialog" onClick={() => setTalks(true)}>
              {t("talks.title")}
            </Button>
          )}
          {shown.value.conversation && (
            <Button kind="bare" small icon="plus" onClick={startAgain}>
              {t("ask.new")}
            </Button>
          )}
        </div>
        <Thread />
        <Composer boxRef={box} />
      </div>
      {open && <OpenSource turn={open.turn} source={open.source} wide={wide} />}
      {talksBeside && <ConversationsBeside />}
      <ConversationsDrawer open={talks && !talksBeside} onClose={() => setTalks(false)} />
    </div>
  );
}

function Thread() {
  const scroller = useRef<HTMLDivElement>(null);
  const { turns, loading, problem } = shown.value;
  const { c, q } = address.read();
  const last = turns.at(-1);
  useEffect(() => {
    // A new question is shown from its beginning, with room for the answer below it.
    scroller.current?.querySelector(":scope > ol > li:last-child")?.scrollIntoView({ block: "start" });
  }, [last?.id]);
  return (
    <div ref={scroller} class={styles.thread}>
      {!c && (!q || linkedQuestion()) ? <Welcome /> : <h1 class="quiet">{t("ask.title")}</h1>}
      {loading && <Loading />}
      {problem && <Failure problem={problem} onRetry={() => void show(c, q, settingsNow())} />}
      {last && (
        <ol class={styles.turns}>
          {turns.map((turn) => (
            <li key={turn.id}>
              <TurnCard turn={turn} last={turn === last} />
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}

/** A question that did not reach the service is asked again when the service is back. */
function useRetryWhenBack(): void {
  const recovered = recoveries.value;
  useEffect(() => {
    const last = shown.value.turns.at(-1);
    if (last?.state === "failed" && last.problem?.kind === "unreachable") void retry(last);
  }, [recovered]);
}

function startAgain(): void {
  address.set({ c: "", q: "", source: "" });
}

/** The address says what is shown: a question without a conversation begins one, unless it waits for the reader. */
function useFollowAddress(): void {
  const { view } = route.value;
  const { c, q } = address.read();
  useEffect(() => {
    if (view !== "ask") return;
    if (!c && (!q || linkedQuestion())) reset();
    else if (!c) address.set({ c: newConversationId() }, { replace: true });
    else void show(c, q, settingsNow());
  }, [view, c, q]);
}
