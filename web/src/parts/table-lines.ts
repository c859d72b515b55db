/** Tables in the text of a document: neighbouring rows, cut into cells. Their texts joined are the text again. */
import { pointsIn } from "./code-points";
import { isRow } from "./table-rows";

export interface Piece {
  text: string;
  /** Code point offset of its start. */
  start: number;
}

/** The words of a cell, between the blanks, separators and line ends around them. */
export interface Cell {
  before: Piece;
  words: Piece;
  after: Piece;
}

export type TextPart = ({ kind: "text" } & Piece) | { kind: "table"; start: number; rows: Cell[][] };

const SEPARATOR = /(?<=^|\s)[|│](?=\s|$)/g;
/** One row by itself may be any line with a bar. */
const FEWEST_ROWS = 2;

/** `from`: the code point offset at which `text` begins in the document. */
export function partsOf(text: string, from: number): TextPart[] {
  const lines = text.split(/(?<=\n)/);
  const parts: TextPart[] = [];
  let start = from;
  for (let at = 0; at < lines.length;) {
    const row = isRow(lines[at] ?? "");
    let end = at + 1;
    while (end < lines.length && isRow(lines[end] ?? "") === row) end += 1;
    const shown = lines.slice(at, end).join("");
    const last = parts.at(-1);
    if (row && end - at >= FEWEST_ROWS) parts.push({ kind: "table", start, rows: rowsOf(lines.slice(at, end), start) });
    else if (last?.kind === "text") last.text += shown;
    else parts.push({ kind: "text", text: shown, start });
    start += pointsIn(shown);
    at = end;
  }
  return parts;
}

function rowsOf(lines: readonly string[], from: number): Cell[][] {
  let start = from;
  return lines.map((line) => {
    const cells = cellTexts(line).map((text) => {
      const [before = "", words = "", after = ""] = /^((?:[|│]|\s)*)(.*?)((?:[|│]|\s)*)$/su.exec(text)?.slice(1) ?? [];
      const [piece, next] = [{ text: before, start }, start + pointsIn(before)];
      const end = next + pointsIn(words);
      start = end + pointsIn(after);
      return { before: piece, words: { text: words, start: next }, after: { text: after, start: end } };
    });
    return cells;
  });
}

/** A line cut before each separator; separators at both ends are no cells of their own. */
function cellTexts(line: string): string[] {
  const cuts = [...line.matchAll(SEPARATOR)].map((match) => match.index);
  const texts = [0, ...cuts].map((cut, number) => line.slice(cut, cuts[number] ?? line.length));
  const [first = "", second = ""] = texts;
  const last = texts.at(-1) ?? "";
  if (texts.length > 3 && !first.trim() && !last.replace(/[|│]/, "").trim())
    return [first + second, ...texts.slice(2, -2), `${texts.at(-2) ?? ""}${last}`];
  return texts;
}
