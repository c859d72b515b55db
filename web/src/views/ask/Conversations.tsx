/** The stored conversations of this key: open one to go on with it, or delete it. */
import { useEffect, useRef, useState } from "preact/hooks";
import { announce } from "../../state/announce";
import { useResource } from "../../state/resource";
import { api } from "../../api/client";
import { asProblem, type Problem } from "../../api/problem";
import type { components } from "../../api/schema";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { Empty, Failure, Loaded } from "../../parts/States";
import { formatDateTime } from "../../text/texts";
import { address } from "./state";
import { t } from "./text";
import { answersGiven } from "./turns";
import styles from "./Conversations.module.css";

type Conversation = components["schemas"]["ConversationShape"];
const PAGE = 50;

export function Conversations({ open, onClose }: { open: boolean; onClose: () => void }) {
  return (
    <Dialog title={t("talks.title")} open={open} onClose={onClose} shape="side">
      <List onOpened={onClose} />
    </Dialog>
  );
}

function List({ onOpened }: { onOpened: () => void }) {
  const [limit, setLimit] = useState(PAGE);
  const [problem, setProblem] = useState<Problem | null>(null);
  const list = useRef<HTMLDivElement>(null);
  /** Position of a deleted row: the focus goes to the row that takes its place. */
  const deletedAt = useRef<number | null>(null);
  const page = useResource(
    (signal) => api.get("/conversations", { query: { limit }, signal }),
    [limit, answersGiven.value],
  );

  useEffect(() => {
    if (deletedAt.current === null || !list.current) return;
    const rows = list.current.querySelectorAll<HTMLElement>("li > a");
    (rows[Math.min(deletedAt.current, rows.length - 1)] ?? list.current).focus();
    deletedAt.current = null;
  }, [page.data]);

  async function remove({ conversation_id }: Conversation, position: number) {
    setProblem(null);
    try {
      await api.delete("/conversations/{conversation_id}", { path: { conversation_id } });
    } catch (error) {
      setProblem(asProblem(error));
      return;
    }
    announce(t("talks.deleted"));
    deletedAt.current = position;
    page.reload();
    if (address.read().c === conversation_id) address.set({ c: "", q: "", source: "" }, { replace: true });
  }

  return (
    <Loaded resource={page}>
      {({ conversations, total }) => (
        <div ref={list} tabIndex={-1}>
          {problem && <Failure problem={problem} />}
          {total === 0 && <Empty title={t("talks.none")} text={t("talks.noneHelp")} />}
          <ul class={styles.list}>
            {conversations.map((talk, index) => (
              <Row
                key={talk.conversation_id}
                talk={talk}
                onOpened={onOpened}
                onDelete={() => void remove(talk, index)}
              />
            ))}
          </ul>
          {total > conversations.length && limit < total && (
            <Button onClick={() => setLimit(limit + PAGE)}>{t("talks.more")}</Button>
          )}
        </div>
      )}
    </Loaded>
  );
}

function Row({ talk, onOpened, onDelete }: { talk: Conversation; onOpened: () => void; onDelete: () => void }) {
  const [asking, setAsking] = useState(false);
  const sure = useRef<HTMLButtonElement>(null);
  const remove = useRef<HTMLButtonElement>(null);
  const wasAsking = useRef(false);
  useEffect(() => {
    if (asking) sure.current?.focus();
    else if (wasAsking.current) remove.current?.focus();
    wasAsking.current = asking;
  }, [asking]);
  const current = address.read().c === talk.conversation_id;
  return (
    <li class={styles.row}>
      <a
        href={address.link({ c: talk.conversation_id, q: "", source: "" })}
        aria-current={current ? "true" : undefined}
        onClick={onOpened}
      >
        <span class={styles.question}>{talk.question}</span>
        <span class={styles.facts}>
          {formatDateTime(talk.updated_at)} · {t("talks.turns", { n: talk.turns })}
        </span>
      </a>
      {asking ? (
        <span class={styles.sure}>
          <Button small danger kind="main" buttonRef={sure} onClick={onDelete}>
            {t("talks.delete")}
          </Button>
          <Button small onClick={() => setAsking(false)}>
            {t("talks.keep")}
          </Button>
        </span>
      ) : (
        <Button
          kind="bare"
          icon="trash"
          buttonRef={remove}
          label={t("talks.deleteOne", { question: talk.question })}
          onClick={() => setAsking(true)}
        />
      )}
    </li>
  );
}
