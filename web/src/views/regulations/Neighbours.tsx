/** Where a provision is in its regulation, with links to the provisions before and after it. */
import { useResource } from "../../state/resource";
import { api } from "../../api/client";
import { address, asOfQuery, linkToProvision, linkToRegulation, nameIn, type Listed, type Provision } from "./state";
import { t } from "./text";
import styles from "./Regulations.module.css";

export function Neighbours({ provision }: { provision: Provision }) {
  const { asOf } = address.read();
  const { regulation } = provision;
  const { data } = useResource(
    (signal) => api.get("/regulations/outline", { query: { regulation, ...asOfQuery(asOf) }, signal }),
    [regulation, asOf],
  );
  const all = data?.provisions ?? [];
  const place = all.findIndex(({ start }) => start === provision.spans[0]?.[0]);
  // Several addenda have one page.
  const before = all.slice(0, Math.max(0, place)).findLast(({ label }) => label !== provision.article);
  const after = place < 0 ? undefined : all.slice(place).find(({ label }) => label !== provision.article);
  return (
    <nav class={styles.neighbours} aria-label={t("article.place")}>
      <p lang="ko">
        <a href={linkToRegulation(regulation, asOf)}>{regulation}</a>
        {(all[place]?.headings ?? []).map((heading) => ` › ${heading}`)}
      </p>
      <p class={styles.links}>
        {before && <Neighbour provision={before} of={regulation} direction="before" />}
        {after && <Neighbour provision={after} of={regulation} direction="after" />}
      </p>
    </nav>
  );
}

interface NeighbourProps {
  provision: Listed;
  of: string;
  direction: "before" | "after";
}

function Neighbour({ provision: { label, title }, of, direction }: NeighbourProps) {
  const { asOf } = address.read();
  const name = title ? `${label} (${title})` : label;
  return (
    <a href={linkToProvision(nameIn(of, label), asOf)}>
      {t(`article.${direction}`)} <span lang="ko">{name}</span>
    </a>
  );
}
