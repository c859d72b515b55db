/** The part of a long passage that is shown at first: the lines with what answers, and one on either side. */

interface Passage {
  text: string;
  /** Spans in code points, in order. */
  marked: readonly number[][];
}

/** Code points that are worth folding. */
const LEAST = 240;

export function foldedAround({ text, marked }: Passage): Passage & { before: boolean; after: boolean } {
  const points = [...text];
  const lineBefore = (at: number) => (at > 0 ? points.lastIndexOf("\n", at - 1) : -1);
  const lineAfter = (at: number) => (points.indexOf("\n", at) + 1 || points.length + 1) - 1;
  const first = lineBefore(lineBefore(marked[0]?.[0] ?? 0)) + 1;
  const last = lineAfter(lineAfter(marked.at(-1)?.[1] ?? 0) + 1);
  const from = first < LEAST ? 0 : first;
  const to = points.length - last < LEAST ? points.length : last;
  return {
    text: points.slice(from, to).join(""),
    marked: marked.map((span) => span.map((at) => at - from)),
    before: from > 0,
    after: to < points.length,
  };
}
