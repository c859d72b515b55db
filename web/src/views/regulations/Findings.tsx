/** The sentences of a checked text that cite something, each with its verdicts in words. */
import { useState } from "preact/hooks";
import { Badge, type Tone } from "../../parts/Badge";
import { Button } from "../../parts/Button";
import { segments } from "../../parts/code-points";
import { Segmented } from "../../parts/Segmented";
import { Empty } from "../../parts/States";
import { language } from "../../text/language";
import { isWrong, sentencesOf, type Sentence, type VerifiedCitation, type VerifiedQuotation } from "./checked-text";
import { ProvisionLink } from "./Citations";
import { address } from "./state";
import { t } from "./text";
import styles from "./Verify.module.css";

const TONES: Record<VerifiedCitation["status"] | VerifiedQuotation["status"], Tone> = {
  exists: "good",
  missing: "bad",
  title_mismatch: "warn",
  repealed: "bad",
  unclear: "neutral",
  verbatim: "good",
  same_letters: "warn",
  different: "bad",
  unchecked: "neutral",
};
/** Sentences that are shown at first, and with every "more". */
const STEP = 100;

interface Verified {
  text: string;
  citations: VerifiedCitation[];
  quotations: VerifiedQuotation[];
}

interface Props {
  verified: Verified;
  heading: { current: HTMLHeadingElement | null };
}

export function Findings({ verified: { text, citations, quotations }, heading }: Props) {
  const { findings } = address.read();
  const [most, setMost] = useState(STEP);
  const all = sentencesOf(text, citations, quotations);
  const citing = all.filter((sentence) => sentence.citations.length + sentence.quotations.length > 0);
  const wrong = citing.filter((sentence) => [...sentence.citations, ...sentence.quotations].some(isWrong));
  const chosen = findings === "wrong" ? wrong : citing;
  const silent = all.length - citing.length;
  const faults = [...citations, ...quotations].filter(isWrong).length;
  return (
    <div class={styles.findings}>
      <header class={styles.summary} data-wrong={faults > 0}>
        <h2 ref={heading} tabIndex={-1}>
          {summary(faults, citations.length)}
        </h2>
        <p>
          {t("verify.counts", { n: citations.length, quoted: quotations.length })}
          {silent > 0 && ` ${t("verify.silent", { n: silent })}`}
        </p>
      </header>
      <Segmented
        label={t("verify.sentences")}
        value={findings}
        choices={[
          { value: "all", text: t("verify.all", { n: citing.length }) },
          { value: "wrong", text: t("verify.onlyWrong", { n: wrong.length }) },
        ]}
        onChange={(value) => address.set({ findings: value }, { replace: true })}
      />
      {chosen.length === 0 ? (
        <Empty title={t("verify.noFindings")}>
          <Button onClick={() => address.set({ findings: "all" }, { replace: true })}>{t("verify.showAll")}</Button>
        </Empty>
      ) : (
        <ol class={styles.sentences} aria-label={t("verify.sentences")}>
          {chosen.slice(0, most).map((sentence) => (
            <SentenceItem key={sentence.start} sentence={sentence} />
          ))}
        </ol>
      )}
      {chosen.length > most && (
        <div>
          <Button onClick={() => setMost(most + STEP)}>{t("verify.more", { n: chosen.length - most })}</Button>
        </div>
      )}
    </div>
  );
}

/** One sentence about the whole text. */
export function summary(wrong: number, citations: number): string {
  if (citations === 0) return t("verify.none");
  return wrong === 0 ? t("verify.allRight") : t("verify.wrong", { n: wrong });
}

function SentenceItem({ sentence }: { sentence: Sentence }) {
  const { citations, quotations } = sentence;
  const verdicts = [
    ...citations.map((citation) => ({ start: citation.start, row: <CitationVerdict citation={citation} /> })),
    ...quotations.map((quotation) => ({ start: quotation.start, row: <QuotationVerdict quotation={quotation} /> })),
  ].sort((one, other) => one.start - other.start);
  return (
    <li class={styles.sentence}>
      <p class={styles.written} lang="ko">
        <Written sentence={sentence} />
      </p>
      <ul class={styles.verdicts}>
        {verdicts.map(({ start, row }) => (
          <li key={start}>{row}</li>
        ))}
      </ul>
    </li>
  );
}

function Written({ sentence: { text, start, citations, quotations } }: { sentence: Sentence }) {
  const spans = [...quotations, ...citations].map((found) => ({ ...found, kind: TONES[found.status] }));
  return (
    <>
      {segments(text, spans, start).map((piece) =>
        piece.kinds.length === 0 ? (
          piece.text
        ) : (
          <mark key={piece.start} data-tone={piece.kinds.at(-1)}>
            {piece.text}
          </mark>
        ),
      )}
    </>
  );
}

function CitationVerdict({ citation }: { citation: VerifiedCitation }) {
  const { status, target, title, range, reason } = citation;
  // The service gives its reasons in English, with facts that its fields do not have.
  const inWords = status === "exists" || language.value !== "en" || !reason ? t(`citation.${status}`) : reason;
  return (
    <div class={styles.verdict}>
      <Badge tone={TONES[status]}>{t(`status.${status}`)}</Badge>
      <div>
        <p>
          <q lang="ko">{citation.text}</q>
          {target && (
            <>
              {" → "}
              <ProvisionLink name={target} />
              {title && <span lang="ko"> ({title})</span>}
            </>
          )}
        </p>
        <p class={styles.words}>
          {inWords}
          {range && ` ${t("citation.range", { range })}`}
        </p>
      </div>
    </div>
  );
}

function QuotationVerdict({ quotation: { status, target } }: { quotation: VerifiedQuotation }) {
  return (
    <div class={styles.verdict}>
      <Badge tone={TONES[status]}>{t(`status.${status}`)}</Badge>
      <div>
        <p>
          {t("quotation.label")}
          {target && (
            <>
              {" → "}
              <ProvisionLink name={target} />
            </>
          )}
        </p>
        <p class={styles.words}>{t(`quotation.${status}`)}</p>
      </div>
    </div>
  );
}
