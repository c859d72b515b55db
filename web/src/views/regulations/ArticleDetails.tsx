/** Of an article: when it was amended, what it cites and what cites it; and its text where the page has not got it. */
import { useState } from "preact/hooks";
import { useResource } from "../../state/resource";
import { href } from "../../state/router";
import { api } from "../../api/client";
import { Badge } from "../../parts/Badge";
import { Button } from "../../parts/Button";
import { Facts } from "../../parts/Facts";
import { Loaded } from "../../parts/States";
import { formatDate } from "../../text/texts";
import { ArticleText } from "./ArticleText";
import { CitedBy, Cites } from "./Citations";
import { address, asOfQuery, type Provision, type ShownProvision } from "./state";
import { t } from "./text";
import styles from "./Regulations.module.css";

function useProvision(reference: string) {
  const { asOf } = address.read();
  return useResource(
    (signal) => api.get("/regulations/show", { query: { reference, ...asOfQuery(asOf) }, signal }),
    [reference, asOf],
  );
}

export function ArticleDetails({ provision, of }: { provision: Provision; of: string }) {
  const shown = useProvision(provision.name);
  const passage = `${provision.start}-${provision.end}`;
  return (
    <div class={styles.part}>
      <Loaded resource={shown} lines={3}>
        {(known) => <History provision={known} />}
      </Loaded>
      <Cites provision={provision} of={of} />
      <CitedBy name={provision.name} />
      <p>
        <a href={href("documents", { path: [provision.document_id], query: { passage } })}>{t("page.document")}</a>
      </p>
    </div>
  );
}

/** In place of a text that was not sent: it is not stored for the day, or the regulation is very long. */
export function TextApart({ provision }: { provision: Provision }) {
  const [wanted, setWanted] = useState(false);
  if (provision.deleted) return <p class={styles.small}>{t("text.notStored")}</p>;
  if (wanted) return <LoadedText provision={provision} />;
  return (
    <p>
      <Button small onClick={() => setWanted(true)}>
        {t("text.load")}
        <span class="quiet">{` ${provision.label}`}</span>
      </Button>
    </p>
  );
}

function LoadedText({ provision: { name } }: { provision: Provision }) {
  return (
    <Loaded resource={useProvision(name)}>
      {({ text, citations }) => <ArticleText {...{ name, text, citations }} />}
    </Loaded>
  );
}

function History({ provision }: { provision: ShownProvision }) {
  const amendments = provision.amendments.map(({ kind, date, paragraph }) =>
    [date && formatDate(date), kind, paragraph !== null && `제${paragraph}항`].filter(Boolean).join(" "),
  );
  const facts: [string, string][] = [
    [t("article.since"), provision.effective_from ? formatDate(provision.effective_from) : t("article.unknown")],
    [t("article.until"), provision.superseded_from ? formatDate(provision.superseded_from) : t("article.noEnd")],
  ];
  return (
    <>
      {provision.repealed && <Badge tone="bad">{t("article.repealed")}</Badge>}
      <Facts facts={facts} />
      <section class={styles.section}>
        <p class={styles.name}>{t("article.amended")}</p>
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
