/** A new agent: all its fields are in the address, so that a link can propose one, and a reload keeps them. */
import { announce } from "../../state/announce";
import { useResource } from "../../state/resource";
import { href, navigate } from "../../state/router";
import { api } from "../../api/client";
import { Page } from "../../parts/Page";
import { Loaded } from "../../parts/States";
import { AgentForm } from "./AgentForm";
import { changesOf, EMPTY, requestOf, withChanges, type Draft } from "./draft";
import { address, linkTo } from "./state";
import { t } from "./text";

export function NewAgent() {
  const { name, branch, changes } = address.read();
  const tree = useResource(
    (signal) => api.get("/taxonomy/{version}/tree", { path: { version: "active" }, signal }),
    [],
  );
  const base: Draft = { ...EMPTY, name, paths: branch };
  const draft: Draft = { ...withChanges(base, changes), name, paths: branch };
  const change = (part: Partial<Draft>) => {
    const next = { ...draft, ...part };
    const rest = changesOf(next, { ...EMPTY, name: next.name, paths: next.paths });
    address.set({ name: next.name, branch: next.paths.map((path) => [...path]), changes: rest }, { replace: true });
  };
  const save = async (version: string) => {
    const agent = await api.post("/agents/from-category", { body: requestOf(draft, version) });
    announce(t("form.created", { name: agent.name }));
    navigate(linkTo(agent.agent_id), { replace: true });
  };
  return (
    <Page title={t("form.new")}>
      <p>
        <a href={href("agents")}>{t("page.all")}</a>
      </p>
      <Loaded resource={tree} lines={6}>
        {(current) => (
          <AgentForm
            tree={current}
            draft={draft}
            action={t("form.create")}
            onChange={change}
            onSave={() => save(current.version)}
          />
        )}
      </Loaded>
    </Page>
  );
}
