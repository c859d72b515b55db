/** Agents: question answering that is limited to branches of the category tree, each with its own options. */
import { useResource } from "../../state/resource";
import { href, route } from "../../state/router";
import { api } from "../../api/client";
import { Badge } from "../../parts/Badge";
import { DataTable } from "../../parts/DataTable";
import { Page } from "../../parts/Page";
import { Empty, Loaded } from "../../parts/States";
import { formatDateTime } from "../../text/texts";
import { AgentPage } from "./AgentPage";
import { Branches, useTree } from "./Branches";
import { NewAgent } from "./NewAgent";
import { address, linkTo, PAGE, type Agent } from "./state";
import { t } from "./text";
import styles from "./Agents.module.css";

export default function AgentsView() {
  const id = route.value.path[0];
  if (id === "new") return <NewAgent />;
  return id ? <AgentPage key={id} id={id} /> : <AgentList />;
}

function AgentList() {
  const { offset } = address.read();
  const agents = useResource((signal) => api.get("/agents", { query: { limit: PAGE, offset }, signal }), [offset]);
  const create = <a href={href("agents", { path: ["new"] })}>{t("agents.create")}</a>;
  return (
    <Page title={t("agents.title")} lead={t("agents.lead")} actions={create}>
      <Loaded resource={agents} lines={5}>
        {({ agents: rows, total }) =>
          total === 0 ? (
            <Empty title={t("agents.none")} text={t("agents.noneHelp")} />
          ) : (
            <>
              <AgentTable rows={rows} />
              {total > PAGE && (
                <nav class={styles.row} aria-label={t("agents.pages")}>
                  {offset > 0 && <a href={address.link({ offset: Math.max(0, offset - PAGE) })}>{t("agents.back")}</a>}
                  {offset + PAGE < total && <a href={address.link({ offset: offset + PAGE })}>{t("agents.next")}</a>}
                </nav>
              )}
            </>
          )
        }
      </Loaded>
    </Page>
  );
}

function AgentTable({ rows }: { rows: readonly Agent[] }) {
  const tree = useTree();
  return (
    <DataTable
      label={t("agents.title")}
      rows={rows}
      keyOf={(row) => row.agent_id}
      columns={[
        { title: t("agents.name"), render: (row) => <a href={linkTo(row.agent_id)}>{row.name}</a> },
        {
          title: t("agents.branches"),
          render: (row) => (
            <span class={styles.row}>
              <Branches agent={row} tree={tree} />
              {row.unresolved_paths.length > 0 && <Badge tone="warn">{t("agents.unresolved")}</Badge>}
            </span>
          ),
        },
        { title: t("agents.edition"), number: true, render: (row) => row.edition },
        { title: t("agents.changed"), render: (row) => formatDateTime(row.updated_at) },
        { title: t("agents.by"), render: (row) => row.created_by },
      ]}
    />
  );
}
