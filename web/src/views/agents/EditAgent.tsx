/** A change of an agent, which the address holds: a new edition, refused when somebody else changed it in the meantime. */
import { announce } from "../../state/announce";
import { useResource } from "../../state/resource";
import { navigate } from "../../state/router";
import { api } from "../../api/client";
import type { components } from "../../api/schema";
import { Loaded } from "../../parts/States";
import { AgentForm } from "./AgentForm";
import { changesOf, draftOf, requestOf, withChanges, type Draft } from "./draft";
import { address, linkTo, type Agent } from "./state";
import { t } from "./text";

interface Props {
  agent: Agent;
  onChanged: () => void;
}

export function EditAgent({ agent, onChanged }: Props) {
  const tree = useResource(
    (signal) => api.get("/taxonomy/{version}/tree", { path: { version: "active" }, signal }),
    [],
  );
  return (
    <Loaded resource={tree} lines={6}>
      {(current) => <Edit key={agent.edition} agent={agent} tree={current} onChanged={onChanged} />}
    </Loaded>
  );
}

function Edit({ agent, tree, onChanged }: Props & { tree: components["schemas"]["TreeShape"] }) {
  const { changes, edition } = address.read();
  const base = draftOf(agent, tree.tree);
  const draft = withChanges(base, changes);
  const change = (part: Partial<Draft>) => {
    const changed = changesOf({ ...draft, ...part }, base);
    address.set({ changes: changed, edition: changed ? edition || agent.edition : 0 }, { replace: true });
  };
  const reload = () => {
    address.set({ changes: "", edition: 0 }, { replace: true });
    onChanged();
  };
  const save = async () => {
    const saved = await api.put("/agents/{agent_id}", {
      path: { agent_id: agent.agent_id },
      body: { ...requestOf(draft, tree.version), edition: edition || agent.edition },
    });
    announce(t("form.changed", { name: saved.name, n: saved.edition }));
    navigate(linkTo(agent.agent_id), { replace: true });
    onChanged();
  };
  return (
    <>
      {agent.unresolved_paths.length > 0 && <p>{t("form.dropped", { names: agent.unresolved_paths.join(", ") })}</p>}
      <AgentForm tree={tree} draft={draft} action={t("form.save")} onChange={change} onSave={save} onReload={reload} />
    </>
  );
}
