/** One version: its changes, its differences from another, what it would do, and bringing it in. */
import { useState } from "preact/hooks";
import { useResource } from "../../state/resource";
import { href } from "../../state/router";
import { mayWholeTreeAs } from "../../state/session";
import { api } from "../../api/client";
import { Button } from "../../parts/Button";
import { Empty, Loaded } from "../../parts/States";
import { formatDateTime } from "../../text/texts";
import { BringIn } from "./BringIn";
import { Compare } from "./Compare";
import { Impact } from "./Impact";
import { operationFrom, type Operation } from "./operations";
import { sentenceOf } from "./sentences";
import { draftLink } from "./state";
import { t } from "./text";
import { createdBy, StateBadge, type Version } from "./Versions";
import styles from "./VersionPage.module.css";

export function VersionPage({ version }: { version: string }) {
  const versions = useResource((signal) => api.get("/taxonomy", { signal }), [version]);
  return (
    <Loaded resource={versions} lines={6}>
      {({ versions: rows }) => {
        const shown = rows.find((row) => row.version === version);
        if (!shown)
          return (
            <Empty title={t("version.missing", { version })}>
              <a href={href("taxonomy", { path: ["versions"] })}>{t("versions.all")}</a>
            </Empty>
          );
        return <Details version={shown} all={rows} onChanged={versions.reload} />;
      }}
    </Loaded>
  );
}

function Details({ version, all, onChanged }: { version: Version; all: Version[]; onChanged: () => void }) {
  const operations = version.operations.flatMap((operation) => operationFrom(operation) ?? []);
  return (
    <div class={styles.version}>
      <header class={styles.header}>
        <div class={styles.name}>
          <h2>{t("version.title", { version: version.version })}</h2>
          <StateBadge version={version} />
        </div>
        {version.rationale && <p class={styles.reason}>{version.rationale}</p>}
        <p class={styles.facts}>
          {createdBy(version)}
          {version.parent && ` · ${t("version.based", { parent: version.parent })}`}
          {version.activated_at && ` · ${t("version.activatedAt", { date: formatDateTime(version.activated_at) })}`}
        </p>
      </header>
      <section class={styles.part}>
        <h3>{t("version.changes")}</h3>
        {operations.length === 0 ? (
          <p class={styles.facts}>{t("version.noChanges")}</p>
        ) : (
          <ol class={styles.changes}>
            {operations.map((operation, index) => (
              <li key={index}>{sentenceOf(operation)}</li>
            ))}
          </ol>
        )}
      </section>
      <Compare version={version} all={all} />
      {!version.active && mayWholeTreeAs("admin") && (
        <Effects version={version} all={all} operations={operations} onChanged={onChanged} />
      )}
    </div>
  );
}

interface EffectsProps {
  version: Version;
  all: Version[];
  operations: readonly Operation[];
  onChanged: () => void;
}

function Effects({ version, all, operations, onChanged }: EffectsProps) {
  const [asking, setAsking] = useState(false);
  const active = all.find((row) => row.active)?.version ?? "";
  const back = version.activated_at !== null;
  const stale = !back && version.parent !== active;
  const preview = useResource(
    stale ? null : (signal) => api.get("/taxonomy/{version}/preview", { path: { version: version.version }, signal }),
    [version.version, active],
  );
  if (stale)
    return (
      <Empty title={t("version.stale", { parent: version.parent ?? "", active })}>
        <a href={draftLink(operations, version.rationale)}>{t("version.again")}</a>
      </Empty>
    );
  return (
    <section class={styles.part}>
      <h3>{t(back ? "impact.titleBack" : "impact.title")}</h3>
      <Loaded resource={preview} lines={4}>
        {(effects) => (
          <div class={styles.part}>
            <Impact effects={effects} />
            <div>
              <Button kind="main" aria-haspopup="dialog" onClick={() => setAsking(true)}>
                {t(back ? "version.rollback" : "version.activate")}
              </Button>
            </div>
            {asking && <BringIn effects={effects} back={back} onClose={() => setAsking(false)} onDone={onChanged} />}
          </div>
        )}
      </Loaded>
    </section>
  );
}
