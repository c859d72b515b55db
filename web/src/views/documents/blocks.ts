/** A text cut at its passages, so that each can be named beside its text. */
import { slicePoints } from "../../parts/code-points";
import type { PassageSpan } from "./state";

export interface Block {
  /** null for text between passages, such as headings. */
  passage: PassageSpan | null;
  start: number;
  text: string;
}

/** The text from offset `from` in blocks; their texts joined are the text again, also when passages overlap. */
export function blocksOf(text: string, from: number, to: number, passages: readonly PassageSpan[]): Block[] {
  const blocks: Block[] = [];
  let at = from;
  const add = (end: number, passage: PassageSpan | null) => {
    if (end <= at) return;
    blocks.push({ passage, start: at, text: slicePoints(text, at - from, end - from) });
    at = end;
  };
  for (const passage of [...passages].sort((a, b) => a.start - b.start)) {
    add(Math.min(passage.start, to), null);
    add(Math.min(passage.end, to), passage);
  }
  add(to, null);
  return blocks;
}
