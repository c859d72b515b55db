import { expect, test } from "vitest";
import { mount } from "../test/setup";
import type { Span } from "./code-points";
import { DocumentText } from "./DocumentText";
import { QuotedAnswer, Quotation } from "./QuotedText";
import { partsOf } from "./table-lines";
import { cellsOf, type QuotedSource } from "./table-rows";

const header = { kind: "header", text: "| Occasion | Paid days |" };
const source = (number: number, display: string, context = [header]): QuotedSource => ({ number, display, context });
const cite = (number: number, key: number) => <button key={key}>{number}</button>;

/** Tag and text of each cell, by row. */
const rowsIn = (page: Element) =>
  [...page.querySelectorAll("tr")].map((row) =>
    [...row.children].map((cell) => `${cell.localName} ${cell.getAttribute("scope") ?? ""} ${cell.textContent}`),
  );

test("neighbouring rows are one table below their header, and citations stay in their rows", () => {
  const text =
    "Paid days off are:\nOccasion | Paid days\nMoving house | 1 [1]\nJury service | as long as needed [2]\nThe end. [3]";
  const sources = [
    source(1, "Moving house | 1"),
    source(2, "Jury service | as long as needed"),
    source(3, "The end.", []),
  ];
  const page = mount(<QuotedAnswer text={text} sources={sources} cite={cite} />);
  expect(rowsIn(page)).toEqual([
    ["th col Occasion", "th col Paid days"],
    ["th row Moving house", "td  1\u00a01"],
    ["th row Jury service", "td  as long as needed\u00a02"],
  ]);
  expect([...page.querySelectorAll("p")].map((line) => line.textContent)).toEqual([
    "Paid days off are:",
    "The end.\u00a03",
  ]);
  expect(page.textContent).not.toContain("|");
  expect(page.querySelectorAll("button")).toHaveLength(3);
});

test("tables with other headers are other tables; a quotation of two rows has no header of its own", () => {
  const two = [
    { kind: "header", text: "a | b" },
    { kind: "header", text: "c | d" },
  ];
  const text = "a | b / c | d\n1 | 2 [1]\n3 | 4\n5 | 6 | 7 [2]";
  const page = mount(
    <QuotedAnswer text={text} sources={[source(1, "1 | 2", two), source(2, "3 | 4\n5 | 6 | 7", [])]} />,
  );
  expect([...page.querySelectorAll("table")].map((table) => rowsIn(table))).toEqual([
    [
      ["th col a", "th col b"],
      ["th col c", "th col d"],
      ["th row 1", "td  2 [1]"],
    ],
    [
      ["td  3", "td  4", "td  "],
      ["td  5", "td  6", "td  7 [2]"],
    ],
  ]);
});

test("without sources, and while the answer is written, rows are rows", () => {
  const page = mount(<QuotedAnswer text={"Occasion | Paid days\nMoving <b>house</b> | 1 [1]"} sources={[]} />);
  expect(rowsIn(page)).toEqual([
    ["td  Occasion", "td  Paid days"],
    ["td  Moving <b>house</b>", "td  1 [1]"],
  ]);
  expect(page.querySelector("b")).toBeNull();
});

test("a quotation by itself has its header; a sentence has its lead-in", () => {
  expect(rowsIn(mount(<Quotation source={source(1, "Moving house | 1")} />))[0]).toEqual([
    "th col Occasion",
    "th col Paid days",
  ]);
  const sentence = mount(<Quotation source={source(1, "Ask first.", [{ kind: "lead", text: "In short:" }])} />);
  expect(sentence.textContent).toBe("In short:Ask first.");
});

test("separators are cut as the service cuts them", () => {
  expect(cellsOf("| a | b |")).toEqual(["a", "b"]);
  expect(cellsOf("a || b | c|d │ e")).toEqual(["a || b", "c|d", "e"]);
  expect(cellsOf("| 1 | 2")).toEqual(["", "1", "2"]);
});

const DOCUMENT = "Über 😀:\n\n| Occasion | Paid days |\nMoving house | 1\n | 2\nx | y\nafter\ngrep a | b\n";

test("the text of a document is whole in its parts, and offsets are code points", () => {
  const parts = partsOf(DOCUMENT, 10);
  const pieces = parts.flatMap((part) =>
    part.kind === "text" ? [part] : part.rows.flat().flatMap(({ before, words, after }) => [before, words, after]),
  );
  expect(pieces.map(({ text }) => text).join("")).toBe(DOCUMENT);
  let at = 10;
  for (const { text, start } of pieces) {
    expect(start).toBe(at);
    at += [...text].length;
  }
  expect(parts.map(({ kind }) => kind)).toEqual(["text", "table", "text"]);
});

test("marks in the cells of a document cover the quotation, and its header is a header", () => {
  const points = [...DOCUMENT];
  const span = (text: string, kind: string): Span => {
    const start = [...DOCUMENT.slice(0, DOCUMENT.indexOf(text))].length;
    return { kind, start, end: start + [...text].length };
  };
  const page = mount(
    <DocumentText
      text={points.join("")}
      spans={[span("Moving house | 1", "quote"), span("| Occasion | Paid days |", "context")]}
    />,
  );
  expect(page.textContent).toBe(DOCUMENT);
  expect([...page.querySelectorAll('mark[data-kinds="quote"]')].map((mark) => mark.textContent).join("")).toBe(
    "Moving house | 1",
  );
  expect(page.querySelectorAll("thead th")).toHaveLength(2);
});
