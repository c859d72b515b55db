/** Reads the Markdown that models write into blocks and spans. What it does not know stays text. */

export type Inline =
  | { kind: "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "strong" | "emphasis"; children: Inline[] }
  | { kind: "link"; href: string; children: Inline[] }
  | { kind: "citation"; number: number };

export type Block =
  | { kind: "paragraph"; children: Inline[] }
  | { kind: "heading"; level: number; children: Inline[] }
  | { kind: "code"; text: string }
  | { kind: "quote"; children: Block[] }
  | { kind: "list"; ordered: boolean; start: number; items: Inline[][] }
  | { kind: "table"; head: Inline[][][]; rows: Inline[][][] };

const FENCE = /^\s{0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const ITEM = /^\s*(?:([-*+])|(\d{1,9})[.)])\s+(.*)$/;
const QUOTE = /^ {0,3}>\s?/;
const TABLE_RULE = /^\s*\|?\s*:?-{3,}:?\s*(?:\|\s*:?-{3,}:?\s*)*\|?\s*$/;
const MAX_DEPTH = 6;

export function parseMarkdown(source: string, depth = 0): Block[] {
  const lines = source.replace(/\r\n?/g, "\n").split("\n");
  const blocks: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    if (!line.trim()) {
      at += 1;
      continue;
    }
    const [block, next] = blockAt(lines, at, line, depth);
    blocks.push(block);
    at = next;
  }
  return blocks;
}

function blockAt(lines: string[], at: number, line: string, depth: number): [Block, number] {
  const fence = FENCE.exec(line)?.[1];
  if (fence) return codeBlock(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading)
    return [{ kind: "heading", level: heading[1]?.length ?? 1, children: parseInline(heading[2] ?? "") }, at + 1];
  if (QUOTE.test(line) && depth < MAX_DEPTH) {
    const end = endOf(lines, at, (text) => QUOTE.test(text));
    const inner = lines.slice(at, end).map((text) => text.replace(QUOTE, ""));
    return [{ kind: "quote", children: parseMarkdown(inner.join("\n"), depth + 1) }, end];
  }
  if (ITEM.test(line)) return listBlock(lines, at);
  if (line.includes("|") && TABLE_RULE.test(lines[at + 1] ?? "")) return tableBlock(lines, at);
  const end = Math.max(
    at + 1,
    endOf(lines, at, (text) => !startsBlock(text)),
  );
  return [{ kind: "paragraph", children: parseInline(lines.slice(at, end).join("\n").trim()) }, end];
}

function startsBlock(line: string): boolean {
  return !line.trim() || FENCE.test(line) || HEADING.test(line) || QUOTE.test(line) || ITEM.test(line);
}

function endOf(lines: string[], from: number, belongs: (line: string) => boolean): number {
  let end = from;
  while (end < lines.length && belongs(lines[end] ?? "")) end += 1;
  return end;
}

function codeBlock(lines: string[], at: number, fence: string): [Block, number] {
  const end = endOf(lines, at + 1, (line) => !line.trim().startsWith(fence));
  return [{ kind: "code", text: lines.slice(at + 1, end).join("\n") }, end + 1];
}

function listBlock(lines: string[], at: number): [Block, number] {
  const first = ITEM.exec(lines[at] ?? "");
  const ordered = first?.[2] !== undefined;
  const items: string[] = [];
  let end = at;
  for (; end < lines.length; end += 1) {
    const line = lines[end] ?? "";
    const item = ITEM.exec(line);
    if (item && (item[2] !== undefined) === ordered) items.push(item[3] ?? "");
    else if (!item && line.trim() && /^\s{2,}/.test(line)) items.push(`${items.pop() ?? ""}\n${line.trim()}`);
    else break;
  }
  return [
    { kind: "list", ordered, start: Number(first?.[2] ?? 1), items: items.map((item) => parseInline(item)) },
    end,
  ];
}

function tableBlock(lines: string[], at: number): [Block, number] {
  const end = endOf(lines, at + 2, (line) => line.includes("|") && line.trim() !== "");
  const cells = (line: string) =>
    line
      .trim()
      .replace(/^\||\|$/g, "")
      .split("|")
      .map((cell) => parseInline(cell.trim()));
  return [{ kind: "table", head: [cells(lines[at] ?? "")], rows: lines.slice(at + 2, end).map(cells) }, end];
}

const INLINE =
  /(?<code>`+)(?<inner>[^`]+?)\k<code>|\*\*(?<strong>(?=\S).+?(?<=\S))\*\*|(?<![\w*])\*(?<star>(?=\S)[^*]+?(?<=\S))\*(?![\w*])|(?<!\w)_(?<bar>(?=\S)[^_]+?(?<=\S))_(?!\w)|\[(?<cite>\d{1,3})\](?!\()|\[(?<label>[^\][]+)\]\((?<href>[^\s()]+)\)/su;

export function parseInline(source: string, depth = 0): Inline[] {
  const spans: Inline[] = [];
  let rest = source;
  while (rest) {
    const match = depth < MAX_DEPTH ? INLINE.exec(rest) : null;
    if (!match?.groups) {
      spans.push({ kind: "text", text: rest });
      break;
    }
    if (match.index > 0) spans.push({ kind: "text", text: rest.slice(0, match.index) });
    spans.push(spanOf(match.groups, match[0], depth));
    rest = rest.slice(match.index + match[0].length);
  }
  return spans;
}

function spanOf(groups: Record<string, string | undefined>, whole: string, depth: number): Inline {
  if (groups.inner !== undefined) return { kind: "code", text: groups.inner };
  if (groups.strong !== undefined) return { kind: "strong", children: parseInline(groups.strong, depth + 1) };
  const emphasis = groups.star ?? groups.bar;
  if (emphasis !== undefined) return { kind: "emphasis", children: parseInline(emphasis, depth + 1) };
  if (groups.cite !== undefined) return { kind: "citation", number: Number(groups.cite) };
  const href = safeLink(groups.href ?? "");
  if (href === null) return { kind: "text", text: whole };
  return { kind: "link", href, children: parseInline(groups.label ?? "", depth + 1) };
}

/** The address of a link that may be followed: http or https, without credentials; null for every other. */
export function safeLink(address: string): string | null {
  let url: URL;
  try {
    url = new URL(address);
  } catch {
    return null;
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") return null;
  return url.username || url.password ? null : url.href;
}

/** Around a marked sentence of an answer. The service never sends these characters: it shows them as <U+0002>. */
export const MARK = ["\u0002", "\u0003"] as const;

/** Plain text with its citations and marked sentences: answers that quote documents are shown as they are. */
export function citationsIn(text: string): Inline[] {
  return text
    .split(/(\[\d{1,3}\]|\u0002[^\u0003]*\u0003)/)
    .filter(Boolean)
    .map((part) => {
      if (part[0] === MARK[0]) return { kind: "strong", children: [{ kind: "text", text: part.slice(1, -1) }] };
      const number = /^\[(\d+)\]$/.exec(part)?.[1];
      return number === undefined ? { kind: "text", text: part } : { kind: "citation", number: Number(number) };
    });
}
