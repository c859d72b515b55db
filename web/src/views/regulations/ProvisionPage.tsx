/** An article, appendix or addendum: its text, when it was amended, what it cites and what cites it. */
import { pathText } from "../../text/path-text";
import { useResource } from "../../state/resource";
import { href } from "../../state/router";
import { api } from "../../api/client";
import { Badge } from "../../parts/Badge";
import { Facts } from "../../parts/Facts";
import { Page } from "../../parts/Page";
import { Loaded } from "../../parts/States";
import { formatDate } from "../../text/texts";
import { ArticleText } from "./ArticleText";
import { AsOf } from "./AsOf";
import { CitedBy, Cites } from "./Citations";
import { Neighbours } from "./Neighbours";
import { address, asOfQuery, type Provision } from "./state";
import { t } from "./text";
import styles from "./Regulations.module.css";

export function ProvisionPage({ reference }: { reference: string }) {
  const { asOf } = address.read();
  const provision = useResource(
    (signal) => api.get("/regulations/show", { query: { reference, ...asOfQuery(asOf) }, signal }),
    [reference, asOf],
  );
  return (
    <Page title={<span lang="ko">{provision.data?.name ?? reference}</span>} actions={<AsOf />}>
      <Loaded resource={provision} lines={8}>
        {(shown) => <Shown provision={shown} />}
      </Loaded>
    </Page>
  );
}

function Shown({ provision }: { provision: Provision }) {
  const [start, end] = provision.spans[0] ?? [0, 0];
  return (
    <article class={styles.part}>
      <Neighbours provision={provision} />
      <header class={styles.heading}>
        {provision.title && <h2 lang="ko">{provision.title}</h2>}
        {provision.deleted && <Badge tone="bad">{t("outline.deleted")}</Badge>}
        {provision.repealed && <Badge tone="bad">{t("article.repealed")}</Badge>}
      </header>
      <ArticleText provision={provision} />
      <p>
        <a href={href("documents", { path: [provision.document_id], query: { passage: `${start}-${end}` } })}>
          {t("page.document")}
        </a>
      </p>
      <Validity provision={provision} />
      <Cites provision={provision} />
      <CitedBy name={provision.name} />
    </article>
  );
}

function Validity({ provision }: { provision: Provision }) {
  const amendments = provision.amendments.map(({ kind, date, paragraph }) =>
    [date && formatDate(date), kind, paragraph !== null && `제${paragraph}항`].filter(Boolean).join(" "),
  );
  const facts: [string, string][] = [
    [t("article.since"), provision.effective_from ? formatDate(provision.effective_from) : t("article.unknown")],
    [t("article.until"), provision.superseded_from ? formatDate(provision.superseded_from) : t("article.noEnd")],
    [t("article.category"), pathText(provision.taxonomy_path) || "–"],
  ];
  return (
    <>
      <Facts facts={facts} />
      <section class={styles.section}>
        <h3>{t("article.amended")}</h3>
        {amendments.length === 0 ? (
          <p class={styles.small}>{t("article.notAmended")}</p>
        ) : (
          <ul lang="ko">
            {amendments.map((amendment, index) => (
              <li key={index}>{amendment}</li>
            ))}
          </ul>
        )}
      </section>
    </>
  );
}
