/** One agent: what it does in sentences, a test question, and what few need; editors change and delete it. */
import { useState } from "preact/hooks";
import { announce } from "../../state/announce";
import { useResource } from "../../state/resource";
import { href, navigate, route } from "../../state/router";
import { api } from "../../api/client";
import { asProblem, type Problem } from "../../api/problem";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { Page } from "../../parts/Page";
import { Failure, Loaded } from "../../parts/States";
import { AgentParts } from "./AgentParts";
import { useTree } from "./Branches";
import { EditAgent } from "./EditAgent";
import { linkTo, type Agent } from "./state";
import { Summary } from "./Summary";
import { TestQuestion } from "./TestQuestion";
import { t } from "./text";
import styles from "./Agents.module.css";

export function AgentPage({ id }: { id: string }) {
  const agent = useResource((signal) => api.get("/agents/{agent_id}", { path: { agent_id: id }, signal }), [id]);
  const editing = route.value.path[1] === "edit";
  return (
    <Page title={agent.data?.name ?? t("page.title")}>
      <p class={styles.row}>
        <a href={href("agents")}>{t("page.all")}</a>
        {editing && <a href={linkTo(id)}>{t("page.back")}</a>}
      </p>
      <Loaded resource={agent} lines={6}>
        {(shown) =>
          editing ? (
            <EditAgent agent={shown} onChanged={agent.reload} />
          ) : (
            <Overview key={shown.edition} agent={shown} />
          )
        }
      </Loaded>
    </Page>
  );
}

function Overview({ agent }: { agent: Agent }) {
  const [deleting, setDeleting] = useState(false);
  const tree = useTree();
  return (
    <div class={styles.form}>
      <Summary agent={agent} tree={tree} />
      <div class={styles.row}>
        <a href={linkTo(agent.agent_id, "edit")}>{t("page.edit")}</a>
        <Button danger icon="trash" aria-haspopup="dialog" onClick={() => setDeleting(true)}>
          {t("page.delete")}
        </Button>
      </div>
      <TestQuestion id={agent.agent_id} />
      <AgentParts id={agent.agent_id} />
      {deleting && <Delete agent={agent} onClose={() => setDeleting(false)} />}
    </div>
  );
}

function Delete({ agent, onClose }: { agent: Agent; onClose: () => void }) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const remove = async () => {
    try {
      await api.delete("/agents/{agent_id}", { path: { agent_id: agent.agent_id } });
      announce(t("delete.done", { name: agent.name }));
      navigate(href("agents"), { replace: true });
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  return (
    <Dialog
      title={t("delete.title", { name: agent.name })}
      open
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t("delete.keep")}</Button>
          <Button kind="main" danger onClick={() => void remove()}>
            {t("page.delete")}
          </Button>
        </>
      }
    >
      <p>{t("delete.help")}</p>
      {problem && <Failure problem={problem} />}
    </Dialog>
  );
}
