/** A conversation in the list, with what can be done to it: rename, export, delete. */
import { useEffect, useRef, useState } from "preact/hooks";
import { announce } from "../../state/announce";
import { api } from "../../api/client";
import { asProblem, type Problem } from "../../api/problem";
import { Button } from "../../parts/Button";
import { Field } from "../../parts/Field";
import { Failure } from "../../parts/States";
import { languageOf } from "../../text/language";
import { formatDateTime } from "../../text/texts";
import { saveConversation, titleOf, type Conversation } from "./conversation-file";
import { address } from "./state";
import { t } from "./text";
import styles from "./Conversations.module.css";

interface Props {
  talk: Conversation;
  onOpened?: () => void;
  onChanged: () => void;
  onDeleted: () => void;
}

export function ConversationRow({ talk, onOpened, onChanged, onDeleted }: Props) {
  const [shows, setShows] = useState<"" | "actions" | "name" | "sure">("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const options = useRef<HTMLButtonElement>(null);
  const first = useRef<HTMLDivElement>(null);
  const { conversation_id } = talk;
  const name = titleOf(talk);
  useEffect(() => {
    if (shows) first.current?.querySelector<HTMLElement>("input, button")?.focus();
  }, [shows]);

  function close() {
    setShows("");
    options.current?.focus();
  }

  async function attempt(change: () => Promise<unknown>, done: string) {
    setProblem(null);
    try {
      await change();
    } catch (error) {
      setProblem(asProblem(error));
      return false;
    }
    announce(done);
    return true;
  }

  async function rename(title: string) {
    const put = () => api.put("/conversations/{conversation_id}", { path: { conversation_id }, body: { title } });
    if (!(await attempt(put, t("talks.renamed")))) return;
    close();
    onChanged();
  }

  async function remove() {
    const removed = () => api.delete("/conversations/{conversation_id}", { path: { conversation_id } });
    if (!(await attempt(removed, t("talks.deleted")))) return;
    onDeleted();
    if (address.read().c === conversation_id) address.set({ c: "", q: "", source: "" }, { replace: true });
  }

  async function save() {
    if (await attempt(() => saveConversation(conversation_id), t("talks.exported"))) close();
  }

  return (
    <li
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !shows) return;
        event.stopPropagation();
        event.preventDefault();
        close();
      }}
    >
      <div class={styles.row}>
        <a
          href={address.link({ c: conversation_id, q: "", source: "" })}
          aria-current={address.read().c === conversation_id ? "true" : undefined}
          onClick={onOpened}
        >
          <span class={styles.question} lang={languageOf(name)}>
            {name}
          </span>
          <span class={styles.facts}>
            {formatDateTime(talk.updated_at)} · {t("talks.turns", { n: talk.turns })}
          </span>
        </a>
        <Button
          kind="bare"
          small
          icon="options"
          buttonRef={options}
          label={t("talks.actions", { question: name })}
          aria-expanded={shows !== ""}
          onClick={() => (shows ? close() : setShows("actions"))}
        />
      </div>
      {problem && <Failure problem={problem} />}
      {shows && (
        <div ref={first} class={styles.actions}>
          {shows === "actions" && (
            <>
              <Button small onClick={() => setShows("name")}>
                {t("talks.rename")}
              </Button>
              <Button small onClick={() => void save()}>
                {t("talks.export")}
              </Button>
              <Button small onClick={() => setShows("sure")}>
                {t("talks.delete")}
              </Button>
            </>
          )}
          {shows === "name" && <Name value={name} onSave={(title) => void rename(title)} onCancel={close} />}
          {shows === "sure" && (
            <>
              <Button small danger kind="main" onClick={() => void remove()}>
                {t("talks.deleteOne", { question: name })}
              </Button>
              <Button small onClick={close}>
                {t("talks.keep")}
              </Button>
            </>
          )}
        </div>
      )}
    </li>
  );
}

function Name({ value, onSave, onCancel }: { value: string; onSave: (title: string) => void; onCancel: () => void }) {
  const [title, setTitle] = useState(value.slice(0, 200));
  return (
    <form
      class={styles.name}
      onSubmit={(event) => {
        event.preventDefault();
        onSave(title);
      }}
    >
      <Field label={t("talks.name")} value={title} maxLength={200} onInput={setTitle} />
      <Button small kind="main" type="submit">
        {t("talks.save")}
      </Button>
      <Button small onClick={onCancel}>
        {t("talks.cancel")}
      </Button>
    </form>
  );
}
