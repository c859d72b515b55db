/** A change of an agent: a new edition, refused when somebody else changed it in the meantime. */
import { useState } from "preact/hooks";
import { announce } from "../../app/announce";
import { useResource } from "../../app/resource";
import { navigate } from "../../app/router";
import { api } from "../../api/client";
import type { components } from "../../api/schema";
import { Loaded } from "../../parts/States";
import { AgentForm } from "./AgentForm";
import { draftOf, requestOf, type Draft } from "./draft";
import { linkTo, type Agent } from "./state";
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
  const [draft, setDraft] = useState<Draft>(() => draftOf(agent, tree.tree));
  const save = async () => {
    const saved = await api.put("/agents/{agent_id}", {
      path: { agent_id: agent.agent_id },
      body: { ...requestOf(draft, tree.version), edition: agent.edition },
    });
    announce(t("form.changed", { name: saved.name, n: saved.edition }));
    navigate(linkTo(agent.agent_id), { replace: true });
    onChanged();
  };
  return (
    <>
      {agent.unresolved_paths.length > 0 && <p>{t("form.dropped", { names: agent.unresolved_paths.join(", ") })}</p>}
      <AgentForm
        tree={tree}
        draft={draft}
        action={t("form.save")}
        onChange={(part) => setDraft((before) => ({ ...before, ...part }))}
        onSave={save}
        onReload={onChanged}
      />
    </>
  );
}
