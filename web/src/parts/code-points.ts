/** The service counts characters in code points, JavaScript in UTF-16 units: an emoji is 1 there and 2 here. */

/** The UTF-16 index of each code point offset. `offsets` in any order; one beyond the end gives the length. */
export function utf16Indices(text: string, offsets: readonly number[]): Map<number, number> {
  const sorted = [...new Set(offsets)].sort((a, b) => a - b);
  const indices = new Map<number, number>();
  let points = 0;
  let index = 0;
  for (const offset of sorted) {
    while (points < offset && index < text.length) {
      index += isPair(text, index) ? 2 : 1;
      points += 1;
    }
    indices.set(offset, index);
  }
  return indices;
}

function isPair(text: string, index: number): boolean {
  const unit = text.charCodeAt(index);
  if (unit < 0xd800 || unit > 0xdbff) return false;
  const next = text.charCodeAt(index + 1);
  return next >= 0xdc00 && next <= 0xdfff;
}

/** `text[start:end]` in code points. */
export function slicePoints(text: string, start: number, end: number): string {
  const indices = utf16Indices(text, [start, end]);
  return text.slice(indices.get(start), indices.get(end));
}

export interface Span {
  start: number;
  end: number;
  kind: string;
}

export interface Segment {
  text: string;
  /** Code point offset of its start. */
  start: number;
  kinds: readonly string[];
}

/** The text in pieces; each names the kinds of all spans that cover it. */
export function segments(text: string, spans: readonly Span[], from = 0): Segment[] {
  const length = from + pointsIn(text);
  const clipped = spans
    .map((span) => ({ ...span, start: Math.max(from, span.start), end: Math.min(length, span.end) }))
    .filter((span) => span.start < span.end);
  const cuts = [...new Set([from, length, ...clipped.flatMap((span) => [span.start, span.end])])].sort((a, b) => a - b);
  const indices = utf16Indices(
    text,
    cuts.map((cut) => cut - from),
  );
  return cuts.slice(0, -1).map((start, number) => {
    const end = cuts[number + 1] ?? length;
    const covering = clipped.filter((span) => span.start <= start && end <= span.end).map((span) => span.kind);
    return {
      text: text.slice(indices.get(start - from), indices.get(end - from)),
      start,
      kinds: [...new Set(covering)],
    };
  });
}

export function pointsIn(text: string): number {
  let points = 0;
  for (let index = 0; index < text.length; index += isPair(text, index) ? 2 : 1) points += 1;
  return points;
}
