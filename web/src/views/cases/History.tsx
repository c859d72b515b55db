/** Interactions with a case, newest first; only administrators may read them. */
import { useResource } from "../../state/resource";
import { api } from "../../api/client";
import { DataTable } from "../../parts/DataTable";
import { Loaded } from "../../parts/States";
import { formatDateTime } from "../../text/texts";
import { t } from "./text";

/** Of the newest interactions of all cases. */
const NEWEST = 1000;

export function History({ id }: { id: string }) {
  const logs = useResource((signal) => api.get("/cbr/logs", { query: { limit: NEWEST }, signal }), [id]);
  return (
    <Loaded resource={logs} lines={2}>
      {({ logs: all }) => {
        const rows = all.filter((log) => log.picked_case_ids.includes(id) || log.suggested_case_ids.includes(id));
        if (rows.length === 0) return <p>{t("history.none", { n: NEWEST })}</p>;
        return (
          <DataTable
            label={t("history.title")}
            rows={rows}
            keyOf={(row) => row.log_id}
            columns={[
              { title: t("history.time"), render: (row) => formatDateTime(row.timestamp) },
              { title: t("history.kind"), render: (row) => t(`history.${row.kind}`) },
              { title: t("case.question"), render: (row) => row.query || "–" },
              { title: t("history.vote"), render: (row) => (row.feedback ? t(`vote.${row.feedback}`) : "–") },
            ]}
          />
        );
      }}
    </Loaded>
  );
}
