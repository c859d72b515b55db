/** The source of a citation in its document: the quotation and what it needs marked, scrolled there. */
import { useEffect, useRef } from "preact/hooks";
import { useDocumentText, windowAround } from "../../state/document-text";
import { href } from "../../state/router";
import type { components } from "../../api/schema";
import { Button } from "../../parts/Button";
import { slicePoints, type Span } from "../../parts/code-points";
import { DocumentText } from "../../parts/DocumentText";
import { safeLink } from "../../parts/parse-markdown";
import { Failure, Loaded } from "../../parts/States";
import { WithOriginal } from "../../parts/WithOriginal";
import { languageOf } from "../../text/language";
import { formatDate } from "../../text/texts";
import { ArticleFacts } from "./ArticleFacts";
import { t } from "./text";
import type { Source } from "./turn";
import styles from "./SourcePanel.module.css";

type Part = components["schemas"]["DocumentTextShape"];
/** Code points shown before and after the citation at first; each click adds twice as many. */
const AROUND = 4000;

export function SourcePanel({ source, asOf }: { source: Source; asOf: string }) {
  const spans = spansOf(source);
  const part = useDocumentText(source.document_id, windowAround(source, spans, AROUND), 2 * AROUND);
  return (
    <Loaded resource={part} lines={8}>
      {(shown) => (
        <div class={styles.source}>
          <Facts source={source} part={shown} asOf={asOf} />
          <WithOriginal part={shown} span={isSame(source, shown) ? source : null}>
            {(original) => (
              <div class={styles.scroller} tabIndex={0} role="group" aria-label={source.title}>
                {original || (
                  <>
                    {shown.start > 0 && (
                      <Button small onClick={() => void part.extend("before")}>
                        {t("source.before")}
                      </Button>
                    )}
                    <Text source={source} part={shown} spans={spans} />
                    {shown.end < shown.characters && (
                      <Button small onClick={() => void part.extend("after")}>
                        {t("source.after")}
                      </Button>
                    )}
                    {part.furtherProblem && <Failure problem={part.furtherProblem} />}
                  </>
                )}
              </div>
            )}
          </WithOriginal>
        </div>
      )}
    </Loaded>
  );
}

/** The link to the whole document with the same spans marked. */
function linkTo(source: Source): string {
  const query: Record<string, string[]> = {};
  for (const { kind, start, end } of spansOf(source)) (query[kind] ??= []).push(`${start}-${end}`);
  return href("documents", { path: [source.document_id], query });
}

export function spansOf(source: Source): Span[] {
  return [
    { start: source.start, end: source.end, kind: "quote" },
    ...source.context.map(({ start, end }) => ({ start, end, kind: "context" })),
    ...source.marked.map(([start, end]) => ({ start, end, kind: "marked" })),
    ...source.highlights.map(([start, end]) => ({ start, end, kind: "answer" })),
  ];
}

/** Whether the document still has the quotation where it was. */
function isSame(source: Source, part: Part): boolean {
  const quoted = slicePoints(part.text, source.start - part.start, source.end - part.start);
  return source.start >= part.start && quoted === source.quote;
}

function Text({ source, part, spans }: { source: Source; part: Part; spans: Span[] }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    box.current?.querySelector('mark[data-kinds~="quote"]')?.scrollIntoView({ block: "center" });
  }, [source.chunk_id, source.start, part.document_id]);
  if (!isSame(source, part)) {
    return (
      <div class={styles.changed} role="alert">
        <p>{t("source.changed")}</p>
        <blockquote>{source.quote}</blockquote>
      </div>
    );
  }
  return (
    <div
      ref={box}
      class={styles.text}
      lang={languageOf(part.text)}
      data-source={`${part.document_id} ${source.start} ${source.end}`}
    >
      <DocumentText text={part.text} spans={spans} from={part.start} />
    </div>
  );
}

function Facts({ source, part, asOf }: { source: Source; part: Part; asOf: string }) {
  const passage = part.passages.find((candidate) => candidate.chunk_id === source.chunk_id);
  const page = source.page ?? passage?.page ?? null; // answers that this tab stored earlier have none
  const original = safeLink(source.url);
  const article = articleOf(passage);
  return (
    <div class={styles.facts}>
      <p class={styles.title}>
        <a href={linkTo(source)}>{source.title}</a>
        {page !== null && <strong>{t("source.page", { n: page })}</strong>}
      </p>
      <p class={styles.small}>
        {t("source.indexed", { date: formatDate(source.date) })}
        {source.version && ` · ${t("source.version", { version: source.version })}`}
        {typeof source.ocr_confidence === "number" && ` · ${t("source.ocr", { n: source.ocr_confidence })}`}
        {original && (
          <>
            {" · "}
            <a href={original} target="_blank" rel="noopener noreferrer nofollow">
              {t("source.original")}
            </a>
          </>
        )}
      </p>
      {article && <ArticleFacts reference={article} asOf={asOf} />}
      <p class={styles.legend}>
        <mark class={styles.quote}>{t("source.quoted")}</mark>
        {source.context.length > 0 && <mark class={styles.context}>{t("source.context")}</mark>}
      </p>
    </div>
  );
}

/** "학칙 제12조" for a passage that is an article of a regulation; "" for every other. */
function articleOf(passage: Part["passages"][number] | undefined): string {
  const { regulation, article } = passage?.metadata ?? {};
  return typeof regulation === "string" && typeof article === "string" ? `${regulation} ${article}` : "";
}
