/** The form for a new key; afterwards its secret, once. */
import { useEffect, useRef, useState } from "preact/hooks";
import { announce } from "../../state/announce";
import { useResource } from "../../state/resource";
import { caller, signIn } from "../../state/session";
import { api, type Body } from "../../api/client";
import { asProblem, type Problem } from "../../api/problem";
import { Button } from "../../parts/Button";
import { CopyButton } from "../../parts/CopyButton";
import { Dialog } from "../../parts/Dialog";
import { Field } from "../../parts/Field";
import { Segmented } from "../../parts/Segmented";
import { Failure, Loaded } from "../../parts/States";
import type { Selection } from "../../parts/branches";
import { TreePicker } from "../../parts/TreePicker";
import { AgentPicker } from "./AgentPicker";
import { t } from "./text";
import styles from "./NewKey.module.css";

type NewKeyBody = Body<"post", "/keys">;
type Role = NonNullable<NewKeyBody["role"]>;
const ROLES: readonly Role[] = ["reader", "editor", "admin", "public"];

interface Draft {
  name: string;
  role: Role;
  scope: Selection;
  expires: string;
  agent: string;
  origins: string;
  principals: string;
  originals: boolean;
}

const EMPTY: Draft = {
  name: "",
  role: "reader",
  scope: [],
  expires: "",
  agent: "",
  origins: "",
  principals: "",
  originals: false,
};

const wordsOf = (text: string): string[] => text.split(/\s+/).filter(Boolean);

/** The request for a draft. The day of expiry ends at midnight in the zone of the browser. */
export function requestOf(draft: Draft): NewKeyBody {
  const isPublic = draft.role === "public";
  return {
    name: draft.name.trim(),
    role: draft.role,
    scope: isPublic || draft.scope.length === 0 ? null : draft.scope.map((path) => [...path]),
    expires_at: draft.expires ? new Date(`${draft.expires}T23:59:59`).toISOString() : null,
    rate_per_minute: null,
    agent_id: isPublic ? draft.agent || null : null,
    origins: isPublic ? wordsOf(draft.origins) : [],
    principals: isPublic ? [] : wordsOf(draft.principals),
    originals: !isPublic && draft.originals,
  };
}

const isComplete = (draft: Draft): boolean =>
  draft.name.trim() !== "" && (draft.role !== "public" || draft.agent !== "");

/** `onCreated` is called when the secret was read: the first key ends the state without keys, and this view with it. */
export function NewKey({ onClose, onCreated }: { onClose: () => void; onCreated: () => void }) {
  const [isFirst] = useState(caller.value?.local === true);
  const [draft, setDraft] = useState<Draft>(isFirst ? { ...EMPTY, role: "admin" } : EMPTY);
  const [secret, setSecret] = useState<string | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const change = (part: Partial<Draft>) => setDraft((before) => ({ ...before, ...part }));
  const create = async () => {
    try {
      const created = await api.post("/keys", { body: requestOf(draft) });
      setSecret(created.secret);
      setProblem(null);
      announce(t("new.created", { name: created.name }));
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  const done = async (key: string) => {
    try {
      if (isFirst && !problem) await signIn(key);
      onClose();
      onCreated();
    } catch (error) {
      setProblem(asProblem(error)); // closing again goes on to the page for signing in
    }
  };
  if (secret !== null)
    return (
      <Dialog
        title={t("new.title")}
        open
        onlyButtonsClose
        onClose={() => void done(secret)}
        footer={
          <Button kind="main" onClick={() => void done(secret)}>
            {t(isFirst ? "new.signIn" : "new.done")}
          </Button>
        }
      >
        <Secret secret={secret} isFirst={isFirst} agent={draft.role === "public" ? draft.agent : ""} />
        {problem && <Failure problem={problem} />}
      </Dialog>
    );
  return (
    <Dialog
      title={t("new.title")}
      open
      onClose={onClose}
      shape="side"
      footer={
        <>
          <Button onClick={onClose}>{t("keys.cancel")}</Button>
          <Button kind="main" disabled={!isComplete(draft)} onClick={() => void create()}>
            {t("new.create")}
          </Button>
        </>
      }
    >
      <div class={styles.form}>
        <Field
          label={t("new.name")}
          hint={t("new.nameHint")}
          value={draft.name}
          maxLength={80}
          autocomplete="off"
          onInput={(name) => change({ name })}
        />
        {isFirst ? (
          <p>{t("new.first")}</p>
        ) : (
          <Segmented
            label={t("new.role")}
            value={draft.role}
            choices={ROLES.map((role) => ({ value: role, text: t(`role.${role}`) }))}
            onChange={(role) => change({ role })}
          />
        )}
        {draft.role === "public" ? (
          <>
            <AgentPicker value={draft.agent} onPick={(agent) => change({ agent })} />
            <Field
              label={t("new.origins")}
              hint={t("new.originsHint")}
              value={draft.origins}
              autocomplete="off"
              onInput={(origins) => change({ origins })}
            />
          </>
        ) : (
          !isFirst && (
            <>
              <Scope selection={draft.scope} onSelect={(scope) => change({ scope })} />
              <Field
                label={t("new.principals")}
                hint={t("new.principalsHint")}
                value={draft.principals}
                autocomplete="off"
                onInput={(principals) => change({ principals })}
              />
              <label class={styles.choice}>
                <input
                  type="checkbox"
                  checked={draft.originals}
                  onChange={(event) => change({ originals: event.currentTarget.checked })}
                />
                {t("new.originals")}
              </label>
            </>
          )
        )}
        <Field
          type="date"
          label={t("new.expires")}
          hint={t("new.expiresHint")}
          value={draft.expires}
          onInput={(expires) => change({ expires })}
        />
        {problem && <Failure problem={problem} />}
      </div>
    </Dialog>
  );
}

/** The secret, selected for copying by hand, too; it has the focus, since the button that created it is gone. */
function Secret({ secret, isFirst, agent }: { secret: string; isFirst: boolean; agent: string }) {
  const text = useRef<HTMLElement>(null);
  useEffect(() => {
    text.current?.focus();
    if (text.current) getSelection()?.selectAllChildren(text.current);
  }, []);
  return (
    <div class={styles.form}>
      <p>{t("new.once")}</p>
      {isFirst && <p>{t("new.firstDone")}</p>}
      <code class={styles.secret} ref={text} tabIndex={-1}>
        {secret}
      </code>
      <CopyButton small={false} text={secret} label={t("new.secret")} />
      {agent && <Embedding secret={secret} agent={agent} />}
    </div>
  );
}

/** What a public key is for: the question box of another site. */
function Embedding({ secret, agent }: { secret: string; agent: string }) {
  const line = `<script src="${location.origin}/widget.js" data-key="${secret}" data-agent="${agent}" async></script>`;
  return (
    <>
      <p>{t("new.embedding")}</p>
      <code class={styles.secret}>{line}</code>
      <CopyButton small={false} text={line} label={t("new.line")} />
    </>
  );
}

function Scope({ selection, onSelect }: { selection: Selection; onSelect: (scope: Selection) => void }) {
  const tree = useResource(
    (signal) => api.get("/taxonomy/{version}/tree", { path: { version: "active" }, signal }),
    [],
  );
  return (
    <section>
      <h3>{t("keys.scope")}</h3>
      <p class={styles.hint}>{t("new.scopeHint")}</p>
      <Loaded resource={tree}>
        {({ tree: branches }) => (
          <TreePicker tree={branches} label={t("keys.scope")} selection={selection} onSelect={onSelect} />
        )}
      </Loaded>
    </section>
  );
}
