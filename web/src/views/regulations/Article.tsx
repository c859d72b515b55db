/** An article, appendix or addendum in the text of its regulation; its history and citations are shown on demand. */
import { useState } from "preact/hooks";
import { Badge } from "../../parts/Badge";
import { ArticleDetails, TextApart } from "./ArticleDetails";
import { ArticleText } from "./ArticleText";
import { address, headOf, linkToPlace, placeIn, type Provision } from "./state";
import { t } from "./text";
import styles from "./WholeText.module.css";

interface Props {
  provision: Provision;
  level: number;
  /** What the address calls it. */
  place: string;
  /** The regulation. */
  of: string;
}

export function Article({ provision, level, place, of }: Props) {
  const { asOf } = address.read();
  const [open, setOpen] = useState(false);
  const Title = `h${level}` as "h3";
  return (
    <article class={styles.article} aria-label={provision.name}>
      <Title tabIndex={-1} data-place={place}>
        <a href={linkToPlace(of, placeIn(provision), asOf)} lang="ko">
          {headOf(provision)}
        </a>{" "}
        {provision.deleted && <Badge tone="bad">{t("outline.deleted")}</Badge>}
      </Title>
      {provision.text === null ? (
        <TextApart provision={provision} />
      ) : (
        <ArticleText {...provision} text={provision.text} />
      )}
      <details class={styles.details} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <span class="quiet">{`${provision.label}: `}</span>
          {t("article.more")}
        </summary>
        {open && <ArticleDetails provision={provision} of={of} />}
      </details>
    </article>
  );
}
