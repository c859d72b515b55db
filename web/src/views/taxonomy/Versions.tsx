/** All versions of the tree, the newest first. */
import { useResource } from "../../app/resource";
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
                  <a href={versionLink(version.version)}>{version.version}</a>
                  <StateBadge version={version} />
                </p>
                <p class={styles.reason}>{version.rationale || (version.parent === null ? t("versions.first") : "")}</p>
                <p class={styles.facts}>
                  {t("versions.by", { name: version.created_by, date: formatDateTime(version.created_at) })} ·{" "}
                  {t("versions.changes", { n: version.operations.length })}
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
