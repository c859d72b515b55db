/** All versions of the tree, the newest first. */
import { useResource } from "../../state/resource";
import { api } from "../../api/client";
import type { components } from "../../api/schema";
import { Badge } from "../../parts/Badge";
import { Empty, Loaded } from "../../parts/States";
import { formatDateTime } from "../../text/texts";
import { versionLink } from "./state";
import { t } from "./text";
import styles from "./Versions.module.css";

export type Version = components["schemas"]["VersionShape"];

export function Versions() {
  const versions = useResource((signal) => api.get("/taxonomy", { signal }), []);
  return (
    <Loaded resource={versions} lines={6}>
      {({ versions: rows }) =>
        rows.length === 0 ? (
          <Empty title={t("versions.none")} />
        ) : (
          <ul class={styles.list}>
            {rows.map((version) => (
              <li key={version.version}>
                <p class={styles.name}>
                  <a href={versionLink(version.version)}>{t("version.title", { version: version.version })}</a>
                  <StateBadge version={version} />
                </p>
                <p class={styles.reason}>{version.rationale || (version.parent === null ? t("versions.first") : "")}</p>
                <p class={styles.facts}>
                  {createdBy(version)} · {t("versions.changes", { n: version.operations.length })}
                </p>
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  );
}

export function StateBadge({ version }: { version: Version }) {
  if (version.active) return <Badge tone="good">{t("versions.active")}</Badge>;
  if (version.activated_at) return <Badge>{t("versions.earlier")}</Badge>;
  return <Badge tone="accent">{t("versions.proposed")}</Badge>;
}

/** Who made it, and when; the first version was made by nobody. */
export function createdBy({ created_by: name, created_at }: Version): string {
  const date = formatDateTime(created_at);
  return name ? t("versions.by", { name, date }) : date;
}
