/** The stored conversations of this key: search them, and open one to go on with it. */
import { useEffect, useRef, useState } from "preact/hooks";
import { useResource } from "../../state/resource";
import { api } from "../../api/client";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { Empty, Loaded } from "../../parts/States";
import { ConversationRow } from "./ConversationRow";
import { t } from "./text";
import { answersGiven } from "./turns";
import styles from "./Conversations.module.css";

const PAGE = 50;
/** After the last letter that is typed. */
const SEARCH_MS = 250;
export const SEARCH_ID = "search-conversations";

/** Beside the answers, where there is room. */
export function ConversationsBeside() {
  return (
    <aside class={styles.beside} aria-labelledby="conversations">
      <h2 id="conversations">{t("talks.title")}</h2>
      <List />
    </aside>
  );
}

export function ConversationsDrawer({ open, onClose }: { open: boolean; onClose: () => void }) {
  return (
    <Dialog title={t("talks.title")} open={open} onClose={onClose} shape="side">
      <List onOpened={onClose} />
    </Dialog>
  );
}

function List({ onOpened }: { onOpened?: () => void }) {
  const [limit, setLimit] = useState(PAGE);
  const [typed, setTyped] = useState("");
  const q = useLater(typed.trim(), SEARCH_MS);
  const list = useRef<HTMLDivElement>(null);
  /** Position of a deleted row: the focus goes to the row that takes its place. */
  const deletedAt = useRef<number | null>(null);
  const page = useResource(
    (signal) => api.get("/conversations", { query: { limit, q }, signal }),
    [limit, q, answersGiven.value],
  );

  useEffect(() => {
    if (deletedAt.current === null || !list.current) return;
    const rows = list.current.querySelectorAll<HTMLElement>("li a");
    (rows[Math.min(deletedAt.current, rows.length - 1)] ?? list.current).focus();
    deletedAt.current = null;
  }, [page.data]);

  return (
    <Loaded resource={page}>
      {({ conversations, total }) => (
        <div ref={list} tabIndex={-1} class={styles.talks}>
          {(total > 0 || q !== "") && (
            <input
              id={SEARCH_ID}
              class={styles.search}
              type="search"
              aria-label={t("talks.search")}
              placeholder={t("talks.search")}
              maxLength={200}
              value={typed}
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          )}
          {total === 0 && q === "" && <Empty title={t("talks.none")} text={t("talks.noneHelp")} />}
          <p role="status" class={styles.facts}>
            {total === 0 && q !== "" && t("talks.notFound")}
          </p>
          <ul class={styles.list}>
            {conversations.map((talk, index) => (
              <ConversationRow
                key={talk.conversation_id}
                talk={talk}
                onOpened={onOpened}
                onChanged={page.reload}
                onDeleted={() => {
                  deletedAt.current = index;
                  page.reload();
                }}
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

/** The value when it has not changed for so long. */
function useLater(value: string, wait: number): string {
  const [later, setLater] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setLater(value), wait);
    return () => clearTimeout(timer);
  }, [value, wait]);
  return later;
}
