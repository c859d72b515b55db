/** The provisions under their chapters (편, 장, 절), with links to their texts. */
import { href } from "../../state/router";
import { Badge } from "../../parts/Badge";
import { Empty } from "../../parts/States";
import { address, headingsOf, linkToProvision, nameIn, type Heading, type Listed, type Outline } from "./state";
import { t } from "./text";
import styles from "./Regulations.module.css";

const DEEPEST = 6;

export function OutlineList({ outline }: { outline: Outline }) {
  const root = headingsOf(outline.provisions);
  if (outline.provisions.length === 0)
    return (
      <Empty title={t("outline.none")} text={t("outline.noneHelp")}>
        <a href={href("documents", { path: [outline.document_id] })}>{t("outline.openDocument")}</a>
      </Empty>
    );
  return (
    <section class={styles.part} aria-label={t("part.outline")}>
      <p>
        <a href={href("documents", { path: [outline.document_id] })}>{t("page.document")}</a>
      </p>
      {root.children.map((heading) => (
        <Chapter key={heading.provisions[0]?.start ?? heading.title} heading={heading} level={2} of={outline.name} />
      ))}
      <Provisions provisions={root.provisions} of={outline.name} />
    </section>
  );
}

function Chapter({ heading, level, of }: { heading: Heading; level: number; of: string }) {
  const Title = `h${Math.min(level, DEEPEST)}` as "h2";
  return (
    <section class={styles.chapter}>
      <Title lang="ko">{heading.title}</Title>
      <Provisions provisions={heading.provisions} of={of} />
      {heading.children.map((child) => (
        <Chapter key={child.provisions[0]?.start ?? child.title} heading={child} level={level + 1} of={of} />
      ))}
    </section>
  );
}

function Provisions({ provisions, of }: { provisions: readonly Listed[]; of: string }) {
  const { asOf } = address.read();
  if (provisions.length === 0) return null;
  return (
    <ul class={styles.provisions}>
      {provisions.map((provision) => (
        <li key={`${provision.label} ${provision.start}`}>
          <a href={linkToProvision(nameIn(of, provision.label), asOf)} lang="ko">
            {provision.title ? `${provision.label} (${provision.title})` : provision.label}
          </a>
          {provision.deleted && <Badge tone="bad">{t("outline.deleted")}</Badge>}
        </li>
      ))}
    </ul>
  );
}
