/** An article of a regulation: when it was amended, what it cites and what cites it. */
import { useResource } from "../../state/resource";
import { href } from "../../state/router";
import { api } from "../../api/client";
import { Loaded } from "../../parts/States";
import { t } from "./text";
import styles from "./ArticleFacts.module.css";

export function ArticleFacts({ reference, asOf }: { reference: string; asOf: string }) {
  const article = useResource(
    (signal) => api.get("/regulations/show", { query: { reference, ...(asOf && { as_of: asOf }) }, signal }),
    [reference, asOf],
  );
  if (article.problem?.kind === "missing") return null; // not in the edition of that day: the text below says what it says
  return (
    <Loaded resource={article} lines={2}>
      {(shown) => (
        <details class={styles.article}>
          <summary>{t("article.facts", { name: shown.name })}</summary>
          <dl>
            {shown.effective_from && <Row name={t("article.since")} values={[shown.effective_from]} />}
            {shown.superseded_from && <Row name={t("article.until")} values={[shown.superseded_from]} />}
            <Row name={t("article.amended")} values={shown.amendments.map(amendment)} />
            <Row name={t("article.cites")} values={shown.names} links />
            <Row name={t("article.citedBy")} values={shown.named_by} links />
          </dl>
        </details>
      )}
    </Loaded>
  );
}

function amendment({ kind, date, paragraph }: { kind: string; date: string | null; paragraph: number | null }): string {
  return [date, kind, paragraph !== null && `제${paragraph}항`].filter(Boolean).join(" ");
}

function Row({ name, values, links = false }: { name: string; values: readonly string[]; links?: boolean }) {
  if (values.length === 0) return null;
  return (
    <div class={styles.row}>
      <dt>{name}</dt>
      <dd lang="ko">
        {values.map((value, index) => (
          <span key={value}>
            {index > 0 && ", "}
            {links ? <a href={href("regulations", { query: { at: value } })}>{value}</a> : value}
          </span>
        ))}
      </dd>
    </div>
  );
}
