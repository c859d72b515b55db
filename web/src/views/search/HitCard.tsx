/** One hit: its text with the matched words, and beside it what each stage of the search made of it. */
import { useState } from "preact/hooks";
import { pathText } from "../../text/path-text";
import { href } from "../../state/router";
import { Badge } from "../../parts/Badge";
import { Button } from "../../parts/Button";
import { pointsIn, slicePoints } from "../../parts/code-points";
import { Highlight } from "../../parts/Highlight";
import { foundByLexicon, missingWords, stagesOf, type Hit } from "./stages";
import { StageTable } from "./StageTable";
import { t } from "./text";
import styles from "./HitCard.module.css";

/** Code points of a long passage that are shown at first. */
const SHORT = 480;

export function HitCard({ hit, position, query }: { hit: Hit; position: number; query: string }) {
  const headings = hit.breadcrumb[0] === hit.title ? hit.breadcrumb.slice(1) : hit.breadcrumb;
  return (
    <article class={styles.hit} aria-labelledby={`hit-${position}`}>
      <header class={styles.header}>
        <span class={styles.position} aria-hidden="true">
          {position}
        </span>
        <div class={styles.titles}>
          <h3 id={`hit-${position}`}>
            <TitleLink hit={hit} />
          </h3>
          {headings.length > 0 && <p class={styles.path}>{pathText(headings)}</p>}
        </div>
      </header>
      <div class={styles.columns}>
        <div class={styles.words}>
          <Text hit={hit} />
          <p class={styles.facts}>
            {hit.taxonomy_path.length > 0 ? pathText(hit.taxonomy_path) : t("hit.noCategory")}
            {" · "}
            <code>{hit.chunk_id}</code>
          </p>
        </div>
        <div class={styles.why}>
          <StageTable stages={stagesOf(hit, position)} label={t("hit.stages", { n: position })} />
          <Terms hit={hit} query={query} />
        </div>
      </div>
    </article>
  );
}

function TitleLink({ hit }: { hit: Hit }) {
  const id = documentOf(hit);
  if (!id) return <>{hit.title}</>;
  return <a href={href("documents", { path: [id], query: { passage: `${hit.start}-${hit.end}` } })}>{hit.title}</a>;
}

/** The id of a passage is that of its document, a colon and its position. */
const documentOf = (hit: Hit): string => hit.chunk_id.slice(0, Math.max(0, hit.chunk_id.lastIndexOf(":")));

function Text({ hit }: { hit: Hit }) {
  const [whole, setWhole] = useState(false);
  const spans = hit.highlights.map(([start = 0, end = 0]) => ({ start, end, kind: "term" }));
  const long = pointsIn(hit.text) > SHORT * 1.25;
  const language = typeof hit.metadata.language === "string" ? hit.metadata.language : undefined;
  return (
    <>
      <div class={styles.text} lang={language}>
        <Highlight text={whole || !long ? hit.text : slicePoints(hit.text, 0, SHORT)} spans={spans} />
        {!whole && long && " …"}
      </div>
      {long && (
        <Button small kind="bare" aria-expanded={whole} onClick={() => setWhole(!whole)}>
          {t(whole ? "hit.less" : "hit.whole")}
        </Button>
      )}
    </>
  );
}

function Terms({ hit, query }: { hit: Hit; query: string }) {
  if (!hit.explanation) return null;
  const { terms, expansions } = hit.explanation;
  const missing = missingWords(query, terms);
  return (
    <div class={styles.terms}>
      {terms.length > 0 && (
        <p>
          <span>{t("hit.matched")}</span>
          {terms.map((term) => (
            <Badge key={term} tone="good">
              {term}
            </Badge>
          ))}
        </p>
      )}
      {missing.length > 0 && (
        <p>
          <span>{t("hit.missing")}</span>
          {missing.map((word) => (
            <Badge key={word}>{word}</Badge>
          ))}
        </p>
      )}
      {expansions.length > 0 && (
        <p>
          <span>{t("hit.expansions")}</span>
          {expansions.map((word) => (
            <Badge key={word} tone="accent">
              {word}
            </Badge>
          ))}
        </p>
      )}
      {foundByLexicon(hit.explanation) && <p class={styles.lexicon}>{t("hit.lexicon")}</p>}
    </div>
  );
}
