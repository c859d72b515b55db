/** The text whose citations are checked. It is never in the address, and ends with the session. */
import { signal } from "@preact/signals";
import type { components } from "../../api/schema";
import { whenSessionEnds } from "../../state/session";
import { pointsIn } from "../../parts/code-points";

type Schemas = components["schemas"];
export type VerifiedCitation = Schemas["VerifiedCitationShape"];
export type VerifiedQuotation = Schemas["VerifiedQuotationShape"];

/** As it is typed, and as it was when it was last checked; "": not yet. They outlive a visit to an article. */
export const draft = signal("");
export const checked = signal("");

whenSessionEnds(() => {
  draft.value = "";
  checked.value = "";
});

export interface Sentence {
  text: string;
  /** Its start, in code points of the whole text. */
  start: number;
  citations: VerifiedCitation[];
  quotations: VerifiedQuotation[];
}

/** Blanks after the end of a sentence, and line breaks. The point of a date (2024. 3. 1.) ends none. */
const BREAK = /(?<=[^\d\s.][.?!。][”"’')\]」』]{0,3})\s+|\s*\n\s*/g;

/** The sentences of a text with what they cite and quote; a citation or quotation is in one of them as a whole. */
export function sentencesOf(
  text: string,
  citations: readonly VerifiedCitation[],
  quotations: readonly VerifiedQuotation[],
): Sentence[] {
  const spans = [...citations, ...quotations].sort((a, b) => a.start - b.start);
  const sentences: Sentence[] = [];
  const rest = { citations: [...citations], quotations: [...quotations] };
  let [from, points, covered, next] = [0, 0, 0, 0];
  for (const index of [...[...text.matchAll(BREAK)].map((found) => found.index + found[0].length), text.length]) {
    const end = points + pointsIn(text.slice(from, index));
    for (let span = spans[next]; span && span.start < end; span = spans[++next]) covered = Math.max(covered, span.end);
    if (covered > end && index < text.length) continue;
    const written = text.slice(from, index);
    if (written.trim())
      sentences.push({
        text: written,
        start: points,
        citations: taken(rest.citations, end),
        quotations: taken(rest.quotations, end),
      });
    [from, points] = [index, end];
  }
  return sentences;
}

/** Removes and returns the first of `found`, which begin before `end`. */
function taken<T extends { start: number }>(found: T[], end: number): T[] {
  const count = found.findIndex(({ start }) => start >= end);
  return found.splice(0, count < 0 ? found.length : count);
}

export const isWrong = (finding: VerifiedCitation | VerifiedQuotation): boolean =>
  finding.status !== "exists" && finding.status !== "verbatim";
