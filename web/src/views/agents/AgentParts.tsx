/** The exported manifest, the editions or the spending of an agent. */
import { useResource } from "../../state/resource";
import { api } from "../../api/client";
import { DataTable } from "../../parts/DataTable";
import { Facts } from "../../parts/Facts";
import { Loaded } from "../../parts/States";
import { formatDateTime, formatNumber } from "../../text/texts";
import { Manifest } from "./Manifest";
import { t } from "./text";

export function AgentParts({ id, part }: { id: string; part: "manifest" | "editions" | "spending" }) {
  if (part === "manifest") return <Exported id={id} />;
  return part === "editions" ? <Editions id={id} /> : <Spending id={id} />;
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

function Spending({ id }: { id: string }) {
  const spending = useResource(
    (signal) => api.get("/agents/{agent_id}/spending", { path: { agent_id: id }, signal }),
    [id],
  );
  return (
    <Loaded resource={spending}>
      {({ day, calls, tokens, krw, tokens_per_day, krw_per_day }) => {
        const of = (value: number, budget: number) =>
          t("spending.of", { value: formatNumber(value), budget: formatNumber(budget) });
        const facts: [string, string][] = [
          [t("spending.day"), day],
          [t("spending.calls"), formatNumber(calls)],
          [t("spending.tokens"), of(tokens, tokens_per_day)],
          [t("spending.won"), of(krw, krw_per_day)],
        ];
        return <Facts facts={facts} />;
      }}
    </Loaded>
  );
}
