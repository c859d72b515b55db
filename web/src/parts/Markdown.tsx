/** Markdown as elements: no HTML is ever made from text, and links lead only to http and https. */
import type { ComponentChildren, VNode } from "preact";
import { useMemo } from "preact/hooks";
import { CellTable } from "./CellTable";
import { parseMarkdown, type Block, type Inline } from "./parse-markdown";
import styles from "./Markdown.module.css";

export type Cite = (number: number, key: number) => VNode;

interface Props {
  text: string;
  /** What `[n]` becomes; the text itself when left out. */
  cite?: Cite;
}

export function Markdown({ text, cite }: Props) {
  const blocks = useMemo(() => parseMarkdown(text), [text]);
  return <div class={styles.markdown}>{blocks.map((block, index) => blockElement(block, index, cite))}</div>;
}

function blockElement(block: Block, key: number, cite?: Cite): VNode {
  switch (block.kind) {
    case "heading":
      // An answer lies below headings of the page: its own are never of a higher level.
      return block.level < 3 ? (
        <h3 key={key}>{inline(block.children, cite)}</h3>
      ) : (
        <h4 key={key}>{inline(block.children, cite)}</h4>
      );
    case "code":
      return (
        <pre key={key} tabIndex={0}>
          <code>{block.text}</code>
        </pre>
      );
    case "quote":
      return (
        <blockquote key={key}>{block.children.map((child, index) => blockElement(child, index, cite))}</blockquote>
      );
    case "list": {
      const items = block.items.map((item, index) => <li key={index}>{inline(item, cite)}</li>);
      return block.ordered ? (
        <ol key={key} start={block.start}>
          {items}
        </ol>
      ) : (
        <ul key={key}>{items}</ul>
      );
    }
    case "table": {
      const cells = (row: Inline[][]) => row.map((cell) => inline(cell, cite));
      return <CellTable key={key} head={block.head.map(cells)} rows={block.rows.map(cells)} />;
    }
    default:
      return <p key={key}>{inline(block.children, cite)}</p>;
  }
}

export function inline(spans: readonly Inline[], cite?: Cite): ComponentChildren {
  return spans.map((span, key) => {
    switch (span.kind) {
      case "text":
        // A mark stays on the line of the word before it.
        return cite && spans[key + 1]?.kind === "citation" ? span.text.replace(/ $/, "\u00a0") : span.text;
      case "code":
        return <code key={key}>{span.text}</code>;
      case "strong":
        return <strong key={key}>{inline(span.children, cite)}</strong>;
      case "emphasis":
        return <em key={key}>{inline(span.children, cite)}</em>;
      case "citation":
        return cite ? cite(span.number, key) : `[${span.number}]`;
      case "link":
        return (
          <a key={key} href={span.href} rel="noopener noreferrer nofollow" target="_blank">
            {inline(span.children, cite)}
          </a>
        );
    }
  });
}
