/** What few need of an agent, folded: its editions, and its manifest as JSON. */
import { useResource } from "../../state/resource";
import { api } from "../../api/client";
import { DataTable } from "../../parts/DataTable";
import { Folded } from "../../parts/Folded";
import { Loaded } from "../../parts/States";
import { formatDateTime } from "../../text/texts";
import { Manifest } from "./Manifest";
import { t } from "./text";

export function AgentParts({ id }: { id: string }) {
  return (
    <>
      <Folded title={t("part.editions")}>
        <Editions id={id} />
      </Folded>
      <Folded title={t("part.manifest")}>
        <Exported id={id} />
      </Folded>
    </>
  );
}

function Exported({ id }: { id: string }) {
  const manifest = useResource(
    (signal) => api.get("/agents/{agent_id}/manifest", { path: { agent_id: id }, query: { format: "json" }, signal }),
    [id],
  );
  return (
    <Loaded resource={manifest} lines={6}>
      {(value) => <Manifest value={value} label={t("part.manifest")} />}
    </Loaded>
  );
}

function Editions({ id }: { id: string }) {
  const editions = useResource(
    (signal) => api.get("/agents/{agent_id}/editions", { path: { agent_id: id }, signal }),
    [id],
  );
  return (
    <Loaded resource={editions}>
      {({ editions: rows }) => (
        <DataTable
          label={t("part.editions")}
          rows={rows}
          keyOf={(row) => row.edition}
          columns={[
            { title: t("agents.edition"), render: (row) => row.edition },
            { title: t("agents.changed"), render: (row) => formatDateTime(row.created_at) },
            { title: t("agents.by"), render: (row) => row.created_by },
            {
              title: t("part.manifest"),
              render: (row) => (
                <details>
                  <summary>{row.manifest.name}</summary>
                  <Manifest value={row.manifest} label={t("editions.manifest", { n: row.edition })} />
                </details>
              ),
            },
          ]}
        />
      )}
    </Loaded>
  );
}
