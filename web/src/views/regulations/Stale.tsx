/** Citations that need a look: of provisions that changed or were repealed after them, and of missing ones. */
import { useResource } from "../../state/resource";
import { api } from "../../api/client";
import { Badge } from "../../parts/Badge";
import { DataTable } from "../../parts/DataTable";
import { Segmented } from "../../parts/Segmented";
import { Empty, Loaded } from "../../parts/States";
import { formatDate } from "../../text/texts";
import { ProvisionLink } from "./Citations";
import { Pages } from "./Pages";
import { address, asOfQuery, BROKEN, PAGE } from "./state";
import { t } from "./text";
import styles from "./Regulations.module.css";

/** Of one regulation, or of all. */
export function Stale({ regulation }: { regulation?: string }) {
  const { broken } = address.read();
  return (
    <section class={styles.part} aria-label={t("show.stale")}>
      <Segmented
        label={t("stale.of")}
        value={broken}
        choices={BROKEN.map((value) => ({ value, text: t(`stale.${value}`) }))}
        onChange={(value) => address.set({ broken: value, offset: 0 })}
      />
      {broken === "changed" ? <Changed regulation={regulation} /> : <Missing regulation={regulation} />}
    </section>
  );
}

function usePage(regulation: string | undefined) {
  const { asOf, offset } = address.read();
  const query = { limit: PAGE, offset, ...(regulation && { regulation }), ...asOfQuery(asOf) };
  return { query, dependencies: [regulation, asOf, offset] };
}

function Changed({ regulation }: { regulation: string | undefined }) {
  const { query, dependencies } = usePage(regulation);
  const page = useResource((signal) => api.get("/regulations/stale", { query, signal }), dependencies);
  return (
    <Loaded resource={page} lines={6}>
      {({ stale, total }) =>
        stale.length === 0 ? (
          <Empty title={t("stale.none")} text={t("stale.noneHelp")}>
            <a href={address.link({ broken: "missing", offset: 0 })}>{t("stale.seeMissing")}</a>
          </Empty>
        ) : (
          <div class={styles.section}>
            <p role="status">{t("stale.count", { n: total })}</p>
            <DataTable
              label={t("stale.changed")}
              rows={stale}
              keyOf={(row) => `${row.source} ${row.target}`}
              columns={[
                { title: t("stale.source"), render: (row) => <ProvisionLink name={row.source} /> },
                { title: t("stale.text"), render: (row) => <q lang="ko">{row.text}</q> },
                { title: t("stale.target"), render: (row) => <ProvisionLink name={row.target} /> },
                {
                  title: t("stale.change"),
                  render: ({ change, target_amended: day }) => (
                    <span class={styles.links}>
                      <Badge tone={change === "repealed" ? "bad" : "warn"}>{t(`stale.is.${change}`)}</Badge>
                      {day && formatDate(day)}
                    </span>
                  ),
                },
                {
                  title: t("stale.sourceDay"),
                  render: ({ source_amended: day }) => (day ? formatDate(day) : t("article.unknown")),
                },
              ]}
            />
            <Pages total={total} />
          </div>
        )
      }
    </Loaded>
  );
}

function Missing({ regulation }: { regulation: string | undefined }) {
  const { query, dependencies } = usePage(regulation);
  const page = useResource(
    (signal) => api.get("/regulations/citations", { query: { ...query, kind: "missing" }, signal }),
    dependencies,
  );
  return (
    <Loaded resource={page} lines={6}>
      {({ citations, total }) =>
        citations.length === 0 ? (
          <Empty title={t("stale.noneMissing")} text={t("stale.noneMissingHelp")}>
            <a href={address.link({ broken: "changed", offset: 0 })}>{t("stale.seeChanged")}</a>
          </Empty>
        ) : (
          <div class={styles.section}>
            <p role="status">{t("stale.countMissing", { n: total })}</p>
            <DataTable
              label={t("stale.missing")}
              rows={citations}
              keyOf={(row) => `${row.source} ${row.start}`}
              columns={[
                { title: t("stale.source"), render: (row) => <ProvisionLink name={row.source} /> },
                { title: t("stale.text"), render: (row) => <q lang="ko">{row.text}</q> },
                {
                  title: t("stale.target"),
                  render: () => (
                    <span class={styles.links}>
                      <Badge tone="bad">{t("kind.missing")}</Badge>
                    </span>
                  ),
                },
              ]}
            />
            <Pages total={total} />
          </div>
        )
      }
    </Loaded>
  );
}
