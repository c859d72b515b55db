/** The text of a document in windows around what is marked, cut at its passages. */
import { useEffect, useRef } from "preact/hooks";
import { useDocumentText } from "../../state/document-text";
import { Button } from "../../parts/Button";
import type { Span } from "../../parts/code-points";
import { DocumentText } from "../../parts/DocumentText";
import { Empty, Failure, Loaded } from "../../parts/States";
import { blocksOf, type Block } from "./blocks";
import { WithOriginal } from "../../parts/WithOriginal";
import { address, spanOf, spansOf, type Document, type PassageSpan } from "./state";
import { t } from "./text";
import styles from "./TextPart.module.css";

/** Code points shown at first, and added by each click. */
const WINDOW = 20_000;
const BEFORE = 4_000;

export function TextPart({ document }: { document: Document }) {
  const state = address.read();
  const spans = spansOf(state);
  const passage = spanOf(state.passage, "context");
  const quote = spans.find((span) => span.kind === "quote");
  const target = quote?.start ?? Math.min(...spans.map((span) => span.start), ...(passage ? [passage.start] : []));
  const marks = [state.quote, state.context, state.answer, state.passage].flat().join();
  return (
    <Windows
      key={marks}
      document={document}
      spans={spans}
      passage={passage}
      at={Number.isFinite(target) ? target : 0}
    />
  );
}

interface Props {
  document: Document;
  spans: readonly Span[];
  passage: Span | null;
  at: number;
}

function Windows({ document, spans, passage, at }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const part = useDocumentText(document.document_id, { start: Math.max(0, at - BEFORE), end: at + WINDOW }, WINDOW);
  const loaded = part.data !== undefined;
  useEffect(() => {
    const target = box.current?.querySelector('mark[data-kinds~="quote"], mark, [aria-current="true"]');
    if (loaded && (spans.length > 0 || passage)) target?.scrollIntoView({ block: "center" });
  }, [loaded]);
  if (document.characters === 0) return <Empty title={t("document.noText")} />;
  return (
    <Loaded resource={part} lines={10}>
      {(shown) => (
        <WithOriginal part={shown} span={spans.find((span) => span.kind === "quote") ?? passage}>
          {(original) =>
            original || (
              <div class={styles.part}>
                {spans.length > 0 && <Legend kinds={new Set(spans.map((span) => span.kind))} />}
                {shown.start > 0 && (
                  <Button small onClick={() => void part.extend("before")}>
                    {t("document.before")}
                  </Button>
                )}
                <div ref={box} class={styles.text} lang={document.language} data-document={document.document_id}>
                  {blocksOf(shown.text, shown.start, shown.end, shown.passages).map((block) => (
                    <BlockText key={block.start} block={block} spans={spans} current={passage} />
                  ))}
                </div>
                {shown.end < shown.characters && (
                  <Button small onClick={() => void part.extend("after")}>
                    {t("document.after")}
                  </Button>
                )}
                {part.furtherProblem && <Failure problem={part.furtherProblem} />}
              </div>
            )
          }
        </WithOriginal>
      )}
    </Loaded>
  );
}

function BlockText({ block, spans, current }: { block: Block; spans: readonly Span[]; current: Span | null }) {
  const { passage } = block;
  const text = <DocumentText text={block.text} spans={spans} from={block.start} />;
  if (!passage) return <div class={styles.between}>{text}</div>;
  const isCurrent = current !== null && passage.start < current.end && current.start < passage.end;
  return (
    <section
      class={`${styles.passage} ${isCurrent ? styles.current : ""}`}
      aria-label={nameOf(passage)}
      aria-current={isCurrent ? "true" : undefined}
    >
      <p class={styles.number} aria-hidden="true">
        {passage.ordinal + 1}
        {passage.page !== null && <span>{t("document.page", { n: passage.page })}</span>}
      </p>
      <div class={styles.words}>{text}</div>
    </section>
  );
}

export function nameOf(passage: PassageSpan): string {
  const name = t("document.passage", { n: passage.ordinal + 1 });
  const heading = passage.breadcrumb.at(-1);
  return heading ? `${name}: ${heading}` : name;
}

function Legend({ kinds }: { kinds: ReadonlySet<string> }) {
  return (
    <p class={styles.legend}>
      {kinds.has("quote") && <span class={styles.quote}>{t("document.quoted")}</span>}
      {kinds.has("context") && <span class={styles.context}>{t("document.context")}</span>}
      {kinds.has("answer") && <span class={styles.answer}>{t("document.answers")}</span>}
    </p>
  );
}
