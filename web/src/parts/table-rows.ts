/** Rows of tables in quoted text: `cell | cell`. The words of the text stay as they are. */
import { segments } from "./code-points";
import { citationsIn, MARK, type Block, type Inline } from "./parse-markdown";

export type Table = Extract<Block, { kind: "table" }>;
export type Quoted = Extract<Block, { kind: "paragraph" }> | Table;

/** What an answer quotes; `header` spans hold the header rows of a quoted row. */
export interface QuotedSource {
  number: number;
  display: string;
  context: readonly { kind: string; text: string }[];
}

const PIPE = /(?:^|\s)[|│](?=\s|$)/;
const SEPARATOR = /(?:^|(?<=\s))[|│](?=\s|$)/;
const CITED = /((?:\s*\[\d{1,3}\])+)\s*$/;

export const isRow = (line: string): boolean => PIPE.test(line);

/** The cells of a row without blanks around them; separators at both ends are no cells of their own. */
export function cellsOf(line: string): string[] {
  const cells = line.trim().split(SEPARATOR);
  const trimmed = cells.map((cell) => cell.trim());
  const outer = trimmed.length > 2 && !trimmed[0] && !trimmed.at(-1);
  return outer ? trimmed.slice(1, -1) : trimmed;
}

/** The text of an answer that quotes documents: lines, and rows as tables. Header rows need the sources. */
export function quotedBlocks(
  text: string,
  sources: readonly QuotedSource[],
  marked: readonly number[][] = [],
): Quoted[] {
  const blocks: Quoted[] = [];
  const lines = withMarks(text, marked).split("\n");
  for (let at = 0; at < lines.length;) {
    const rows = isRow(withoutCitations(lines[at] ?? ""));
    let end = at + 1;
    while (end < lines.length && isRow(withoutCitations(lines[end] ?? "")) === rows) end += 1;
    const part = lines.slice(at, end);
    if (rows) blocks.push(...tablesOf(part, sources));
    else if (part.some((line) => line.trim()))
      blocks.push({ kind: "paragraph", children: citationsIn(part.join("\n").replace(/^\n+|\n+$/g, "")) });
    at = end;
  }
  return blocks;
}

function withMarks(text: string, marked: readonly number[][]): string {
  const spans = marked.map(([start = 0, end = 0]) => ({ start, end, kind: "" }));
  const [open, close] = MARK;
  return segments(text, spans)
    .map((part) =>
      part.kinds.length > 0 ? open + part.text.replaceAll(" | ", `${close} | ${open}`) + close : part.text,
    )
    .join("");
}

/** One quotation by itself, with its header rows. */
export function quotationBlocks({ display, context }: Omit<QuotedSource, "number">): Quoted[] {
  const lines = display.split("\n");
  const lead = context.filter((span) => span.kind !== "header" || !lines.every(isRow)).map(paragraph);
  if (!lines.every(isRow)) return [...lead, paragraph({ text: display })];
  return [...lead, tableOf(headerCells(context), lines.map(plainCells))];
}

const paragraph = ({ text }: { text: string }): Quoted => ({
  kind: "paragraph",
  children: [{ kind: "text", text }],
});
const withoutCitations = (line: string): string => line.replace(CITED, "");
const plainCells = (line: string): Inline[][] => cellsOf(line).map((text) => [{ kind: "text", text }]);

/** Neighbouring rows as tables: a line that repeats the header of the next citation begins another one. */
function tablesOf(lines: readonly string[], sources: readonly QuotedSource[]): Table[] {
  const tables: Table[] = [];
  let head: string[][] = [];
  let rows: Inline[][][] = [];
  let uncited: string[] = [];
  const close = () => {
    if (rows.length > 0 || head.length > 0) tables.push(tableOf(head, rows));
    rows = [];
  };
  for (const line of lines) {
    const number = Number(/\[(\d+)\]\s*$/.exec(line)?.[1] ?? 0);
    if (number === 0) {
      uncited.push(line);
      continue;
    }
    const source = sources.find((candidate) => candidate.number === number);
    const header = headerCells(source?.context ?? []);
    const [first] = uncited;
    if (header.length > 0 && first !== undefined && lettersOf(first) === lettersOf(header.flat().join(""))) {
      close();
      head = header;
      uncited.shift();
    } else if (lettersOf(head.flat().join("")) !== lettersOf(header.flat().join(""))) {
      close();
      head = header;
    }
    rows.push(...uncited.map(citedCells), citedCells(line));
    uncited = [];
  }
  rows.push(...uncited.map(citedCells));
  close();
  return tables;
}

/** The cells with their citations; those at the end of the line belong to the last cell. */
function citedCells(line: string): Inline[][] {
  const marks = CITED.exec(line)?.[1] ?? "";
  const cells = cellsOf(withoutCitations(line)).map((cell) => citationsIn(cell));
  if (marks) cells.at(-1)?.push(...citationsIn(` ${marks.trim()}`));
  return cells;
}

const headerCells = (context: QuotedSource["context"]): string[][] =>
  context.filter(({ kind, text }) => kind === "header" && isRow(text)).map(({ text }) => cellsOf(text));

/** All cells of a line or of several, to compare them however they were joined. */
const lettersOf = (text: string): string => text.replace(/[\s|│/()[\]]/g, "");

/** Every row with as many cells. */
function tableOf(head: readonly string[][], rows: readonly Inline[][][]): Table {
  const width = Math.max(...head.map((row) => row.length), ...rows.map((row) => row.length));
  const filled = <T>(row: readonly T[], empty: T): T[] => [
    ...row,
    ...Array.from({ length: width - row.length }, () => empty),
  ];
  return {
    kind: "table",
    head: head.map((row) =>
      filled<Inline[]>(
        row.map((text) => [{ kind: "text", text }]),
        [],
      ),
    ),
    rows: rows.map((row) => filled<Inline[]>(row, [])),
  };
}
