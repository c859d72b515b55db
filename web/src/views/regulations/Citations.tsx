/** What a provision cites, and which provisions of all regulations cite it. */
import { useResource } from "../../app/resource";
import { api } from "../../api/client";
import { Loaded } from "../../parts/States";
import { address, asOfQuery, linkToProvision, type Provision } from "./state";
import { t } from "./text";
import styles from "./Regulations.module.css";

const MOST = 100;
type Citation = Provision["citations"][number];

export function ProvisionLink({ name }: { name: string }) {
  const { asOf } = address.read();
  return (
    <a href={linkToProvision(name, asOf)} lang="ko">
      {name}
    </a>
  );
}

export function Cites({ citations }: { citations: readonly Citation[] }) {
  return (
    <section class={styles.section}>
      <h3>{t("cites.title")}</h3>
      {citations.length === 0 ? (
        <p class={styles.small}>{t("cites.none")}</p>
      ) : (
        <ul class={styles.citations}>
          {citations.map((citation) => (
            <li key={citation.start}>
              <q lang="ko">{citation.text}</q>
              <span class={styles.links}>
                {citation.targets.map((target) => (
                  <ProvisionLink key={target} name={target} />
                ))}
                {citation.targets.length === 0 && <span class={styles.small}>{kindText(citation.kind)}</span>}
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function kindText(kind: string): string {
  if (kind === "external-law" || kind === "missing" || kind === "repealed") return t(`kind.${kind}`);
  return kind;
}

export function CitedBy({ name }: { name: string }) {
  const { asOf } = address.read();
  const citations = useResource(
    (signal) => api.get("/regulations/citations", { query: { to: name, limit: MOST, ...asOfQuery(asOf) }, signal }),
    [name, asOf],
  );
  return (
    <section class={styles.section}>
      <h3>{t("citedBy.title")}</h3>
      <Loaded resource={citations} lines={2}>
        {({ citations: rows, total }) =>
          rows.length === 0 ? (
            <p class={styles.small}>{t("citedBy.none")}</p>
          ) : (
            <>
              <ul class={styles.citations}>
                {rows.map((row) => (
                  <li key={`${row.source} ${row.start}`}>
                    <ProvisionLink name={row.source} />
                    <q lang="ko">{row.text}</q>
                  </li>
                ))}
              </ul>
              {total > rows.length && <p class={styles.small}>{t("citedBy.more", { n: total - rows.length })}</p>}
            </>
          )
        }
      </Loaded>
    </section>
  );
}
