/** The cases in pages, with filters. */
import { pathText } from "../../text/path-text";
import { useResource } from "../../state/resource";
import { href } from "../../state/router";
import { api } from "../../api/client";
import { Badge } from "../../parts/Badge";
import { Button } from "../../parts/Button";
import { DataTable } from "../../parts/DataTable";
import { Segmented } from "../../parts/Segmented";
import { Empty, Loaded } from "../../parts/States";
import { formatDate } from "../../text/texts";
import { address, filtersOf, PAGE, STALENESS, STATUSES, type ListedCase } from "./state";
import { t } from "./text";
import styles from "./CaseList.module.css";

export function CaseList({ onChange }: { onChange: () => void }) {
  const state = address.read();
  const { status, stale, after } = state;
  const page = useResource(
    (signal) =>
      api.get("/cbr/cases", { query: { limit: PAGE, after: after || undefined, ...filtersOf(state) }, signal }),
    [status, stale, after],
  );
  const filtered = status !== "all" || stale !== "all";
  return (
    <section class={styles.list} aria-labelledby="cases-title">
      <h2 id="cases-title">{t("list.title")}</h2>
      <div class={styles.filters}>
        <Segmented
          label={t("list.status")}
          value={status}
          choices={STATUSES.map((value) => ({ value, text: t(`status.${value}`) }))}
          onChange={(value) => address.set({ status: value, after: "" }, { replace: true })}
        />
        <Segmented
          label={t("list.passages")}
          value={stale}
          choices={STALENESS.map((value) => ({ value, text: t(`stale.${value}`) }))}
          onChange={(value) => address.set({ stale: value, after: "" }, { replace: true })}
        />
      </div>
      <Loaded resource={page} lines={6}>
        {({ cases, next }) => (
          <>
            {cases.length > 0 && <Table cases={cases} />}
            {cases.length === 0 && !next && !after && (
              <Empty
                title={t(filtered ? "list.noneFiltered" : "list.none")}
                text={filtered ? undefined : t("list.noneHelp")}
              >
                {filtered ? (
                  <Button onClick={() => address.set({ status: "all", stale: "all" })}>{t("list.clear")}</Button>
                ) : (
                  <Button icon="retry" onClick={onChange}>
                    {t("list.again")}
                  </Button>
                )}
              </Empty>
            )}
            {(after || next) && (
              <nav class={styles.pages} aria-label={t("list.pages")}>
                {after && <a href={address.link({ after: "" })}>{t("list.first")}</a>}
                {next && <a href={address.link({ after: next })}>{t("list.next")}</a>}
              </nav>
            )}
          </>
        )}
      </Loaded>
    </section>
  );
}

export const linkTo = (id: string): string => href("cases", { path: [id] });

function Table({ cases }: { cases: readonly ListedCase[] }) {
  return (
    <DataTable
      label={t("list.title")}
      rows={cases}
      keyOf={(row) => row.case_id}
      columns={[
        {
          title: t("case.question"),
          render: (row) => (
            <span class={styles.question}>
              <a href={linkTo(row.case_id)}>{row.query || row.case_id}</a>
              <span class={styles.small}>
                {pathText(row.category_path) || t("case.noCategory")}{" "}
                {row.status === "archived" && <Badge>{t("status.archived")}</Badge>}{" "}
                {row.stale && <Badge tone="warn">{t("stale.stale")}</Badge>}
              </span>
            </span>
          ),
        },
        {
          title: t("case.votes"),
          render: (row) =>
            row.upvotes + row.downvotes > 0
              ? t("case.votesOf", { up: row.upvotes, down: row.downvotes })
              : t("case.noVotesShort"),
        },
        { title: t("case.updated"), render: (row) => <span class={styles.line}>{formatDate(row.updated_at)}</span> },
      ]}
    />
  );
}
