/** What a provision cites, and which provisions of all regulations cite it. */
import { useResource } from "../../state/resource";
import { api } from "../../api/client";
import { Badge } from "../../parts/Badge";
import { Loaded } from "../../parts/States";
import { address, asOfQuery, citesAnother, linkToCited, nameWithin, targetsOf, type Provision } from "./state";
import { t } from "./text";
import styles from "./Regulations.module.css";

const MOST = 100;

/** `within`: the regulation whose name is left out. */
export function ProvisionLink({ name, within = "" }: { name: string; within?: string }) {
  const { asOf } = address.read();
  return (
    <a href={linkToCited(name, asOf)} lang="ko">
      {nameWithin(name, within)}
    </a>
  );
}

/** `of`: the regulation of the provision. */
export function Cites({ provision, of }: { provision: Provision; of: string }) {
  const citations = provision.citations.filter((citation) => citesAnother(citation, provision.name));
  return (
    <section class={styles.section}>
      <p class={styles.name}>{t("cites.title")}</p>
      {citations.length === 0 ? (
        <p class={styles.small}>{t("cites.none")}</p>
      ) : (
        <ul class={styles.citations}>
          {citations.map((citation) => (
            <li key={citation.start}>
              <q lang="ko">{citation.text}</q>
              <span class={styles.links}>
                {targetsOf(citation, provision.name).map((target) => (
                  <ProvisionLink key={target} name={target} within={of} />
                ))}
                {isUnlinked(citation.kind) && (
                  <Badge tone={citation.kind === "external-law" ? "neutral" : "bad"}>
                    {t(`kind.${citation.kind}`)}
                  </Badge>
                )}
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** Whether a citation of this kind leads to no valid text. */
function isUnlinked(kind: string): kind is "external-law" | "missing" | "repealed" {
  return kind === "external-law" || kind === "missing" || kind === "repealed";
}

export function CitedBy({ name }: { name: string }) {
  const { asOf } = address.read();
  const citations = useResource(
    (signal) => api.get("/regulations/citations", { query: { to: name, limit: MOST, ...asOfQuery(asOf) }, signal }),
    [name, asOf],
  );
  return (
    <section class={styles.section}>
      <p class={styles.name}>{t("citedBy.title")}</p>
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
