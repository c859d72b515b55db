/** A new agent: its name and branches are in the address, so that a link can propose one. */
import { useState } from "preact/hooks";
import { announce } from "../../app/announce";
import { useResource } from "../../app/resource";
import { href, navigate } from "../../app/router";
import { api } from "../../api/client";
import { Page } from "../../parts/Page";
import { Loaded } from "../../parts/States";
import { AgentForm } from "./AgentForm";
import { EMPTY, requestOf, type Draft } from "./draft";
import { address, linkTo } from "./state";
import { t } from "./text";

export function NewAgent() {
  const { name, branch } = address.read();
  const [options, setOptions] = useState(EMPTY);
  const tree = useResource(
    (signal) => api.get("/taxonomy/{version}/tree", { path: { version: "active" }, signal }),
    [],
  );
  const draft: Draft = { ...options, name, paths: branch };
  const change = (part: Partial<Draft>) => {
    setOptions((before) => ({ ...before, ...part }));
    if (part.name !== undefined) address.set({ name: part.name }, { replace: true });
    if (part.paths) address.set({ branch: part.paths.map((path) => [...path]) }, { replace: true });
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
