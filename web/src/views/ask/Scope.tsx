/** Where to search: categories, an agent and a date. The line shows what is set, the dialog changes it. */
import { useState } from "preact/hooks";
import { useResource } from "../../state/resource";
import { mayAs } from "../../state/session";
import { api } from "../../api/client";
import { Button } from "../../parts/Button";
import { branchAt, documentsIn, type Branch } from "../../parts/branches";
import { Dialog } from "../../parts/Dialog";
import { Field } from "../../parts/Field";
import { Empty, Loaded } from "../../parts/States";
import { TreePicker } from "../../parts/TreePicker";
import { formatDate } from "../../text/texts";
import { address, ANYWHERE } from "./state";
import { t } from "./text";
import styles from "./Scope.module.css";

const MOST_AGENTS = 500;
const SHOWN_NAMES = 2;

export function Scope() {
  const [open, setOpen] = useState(false);
  const { scope, agent, as_of, regulation } = address.read();
  const agents = useAgents(mayAs("reader") && (open || agent !== ""));
  const name = agents.data?.agents.find((candidate) => candidate.agent_id === agent)?.name ?? agent;
  const clear = (change: Parameters<typeof address.set>[0]) => address.set(change, { replace: true });
  return (
    <div class={styles.bar} role="group" aria-label={t("scope.label")}>
      <Button small kind="bare" icon="taxonomy" aria-haspopup="dialog" onClick={() => setOpen(true)}>
        {scope.length === 0 ? t("scope.all") : namesOf(scope)}
      </Button>
      {scope.length > 0 && (
        <Button small kind="bare" icon="close" label={t("scope.clear")} onClick={() => clear({ scope: [] })} />
      )}
      {agent && (
        <Chip text={t("scope.agentIs", { name })} remove={t("scope.noAgent")} onRemove={() => clear({ agent: "" })} />
      )}
      {regulation && (
        <Chip
          text={t("scope.regulationIs", { name: regulation })}
          remove={t("scope.allRegulations")}
          onRemove={() => clear({ regulation: "" })}
        />
      )}
      {as_of && (
        <Chip
          text={t("scope.asOfIs", { date: formatDate(as_of) })}
          remove={t("scope.today")}
          onRemove={() => clear({ as_of: "" })}
        />
      )}
      {open && <ScopeDialog onClose={() => setOpen(false)} agents={agents} />}
    </div>
  );
}

function Chip({ text, remove, onRemove }: { text: string; remove: string; onRemove: () => void }) {
  return (
    <span class={styles.chip}>
      {text}
      <Button small kind="bare" icon="close" label={remove} onClick={onRemove} />
    </span>
  );
}

function namesOf(scope: readonly (readonly string[])[]): string {
  const names = scope.slice(0, SHOWN_NAMES).map((path) => path.at(-1) ?? "");
  const more = scope.length - names.length;
  return more > 0 ? t("scope.more", { names: names.join(", "), n: more }) : names.join(", ");
}

const useAgents = (needed: boolean) =>
  useResource(needed ? (signal) => api.get("/agents", { query: { limit: MOST_AGENTS }, signal }) : null, []);

function ScopeDialog({ agents, onClose }: { agents: ReturnType<typeof useAgents>; onClose: () => void }) {
  const { scope, agent, as_of } = address.read();
  const tree = useResource(
    (signal) => api.get("/taxonomy/{version}/tree", { path: { version: "active" }, signal }),
    [],
  );
  const set = (change: Parameters<typeof address.set>[0]) => address.set(change, { replace: true });
  const found = agents.data?.agents ?? [];
  return (
    <Dialog
      title={t("scope.label")}
      open
      onClose={onClose}
      footer={
        <>
          <Button onClick={() => set(ANYWHERE)}>{t("scope.reset")}</Button>
          <Button kind="main" onClick={onClose}>
            {t("scope.done")}
          </Button>
        </>
      }
    >
      <div class={styles.dialog}>
        <section>
          <h3>{t("scope.categories")}</h3>
          <p class={styles.hint} role="status">
            {scope.length === 0
              ? t("scope.allHint")
              : t("scope.count", { n: documentsOf(tree.data?.tree ?? [], scope) })}
          </p>
          <Loaded resource={tree}>
            {({ tree: branches }) =>
              branches.length === 0 ? (
                <Empty title={t("scope.noCategories")} />
              ) : (
                <TreePicker
                  tree={branches}
                  label={t("scope.categories")}
                  selection={scope}
                  onSelect={(chosen) => set({ scope: chosen.map((path) => [...path]) })}
                />
              )
            }
          </Loaded>
        </section>
        {found.length > 0 && (
          <label class={styles.agent}>
            <span>{t("scope.agent")}</span>
            <select value={agent} onChange={(event) => set({ agent: event.currentTarget.value })}>
              <option value="">{t("scope.noAgent")}</option>
              {found.map((candidate) => (
                <option key={candidate.agent_id} value={candidate.agent_id}>
                  {candidate.name}
                </option>
              ))}
            </select>
          </label>
        )}
        <Field
          label={t("scope.asOf")}
          hint={t("scope.asOfHint")}
          type="date"
          value={as_of}
          onInput={(date) => set({ as_of: date })}
        />
      </div>
    </Dialog>
  );
}

function documentsOf(tree: readonly Branch[], scope: readonly (readonly string[])[]): number {
  return scope.reduce((total, path) => {
    const branch = branchAt(tree, path);
    return total + (branch ? documentsIn(branch) : 0);
  }, 0);
}
