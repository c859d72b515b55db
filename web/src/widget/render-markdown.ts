/** Blocks and spans of an answer as elements. */
import type { Block, Inline } from "../parts/parse-markdown";
import { element } from "./element";

/** The element for the mark [n] of a citation. */
export type Cite = (number: number) => Node;

export function blockElement(block: Block, cite: Cite): HTMLElement {
  switch (block.kind) {
    case "paragraph":
      return element("p", {}, ...inlineNodes(block.children, cite));
    case "heading":
      return element("p", { class: "heading" }, ...inlineNodes(block.children, cite));
    case "code":
      return element("pre", { tabindex: "0" }, element("code", {}, block.text));
    case "quote":
      return element("blockquote", {}, ...block.children.map((child) => blockElement(child, cite)));
    case "list":
      return element(
        block.ordered ? "ol" : "ul",
        block.ordered ? { start: String(block.start) } : {},
        ...block.items.map((item) => element("li", {}, ...inlineNodes(item, cite))),
      );
    case "table":
      return tableElement(block.head, block.rows, cite);
  }
}

export function inlineNodes(spans: readonly Inline[], cite: Cite): (Node | string)[] {
  return spans.map((span) => {
    switch (span.kind) {
      case "text":
        return span.text;
      case "code":
        return element("code", {}, span.text);
      case "citation":
        return cite(span.number);
      case "link":
        return element("a", { href: span.href, rel: "noreferrer" }, ...inlineNodes(span.children, cite));
      case "strong":
        return element("strong", {}, ...inlineNodes(span.children, cite));
      case "emphasis":
        return element("em", {}, ...inlineNodes(span.children, cite));
    }
  });
}

/** With header rows, the first cell of each row is its header. */
function tableElement(head: Inline[][][], rows: Inline[][][], cite: Cite): HTMLElement {
  const row = (cells: Inline[][], scopeOf: (column: number) => string) =>
    element(
      "tr",
      {},
      ...cells.map((cell, column) => {
        const scope = scopeOf(column);
        return element(scope ? "th" : "td", { scope: scope || false }, ...inlineNodes(cell, cite));
      }),
    );
  const parts = [
    element("tbody", {}, ...rows.map((cells) => row(cells, (at) => (head.length > 0 && at === 0 ? "row" : "")))),
  ];
  if (head.length > 0) parts.unshift(element("thead", {}, ...head.map((cells) => row(cells, () => "col"))));
  return element("div", { class: "wide", tabindex: "0" }, element("table", {}, ...parts));
}
