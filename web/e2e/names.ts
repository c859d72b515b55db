/** Roles and accessible names of a part of the page, without what differs from run to run. */
import type { Page } from "playwright-core";

/** Rows and items of a list beyond these are left out: the names of the first tell how the others are read. */
const SHOWN = 2;
const REPEATED = /^- '?(row|listitem|treeitem|article|option|mark|term)\b/;
const LONGEST = 160;

export async function namesOf(page: Page, part: string, shown = SHOWN): Promise<string> {
  const snapshot = await page.locator(part).first().ariaSnapshot();
  const lines = snapshot.split("\n").filter((line) => !line.includes("/url:"));
  return `${shortened(lines, shown).map(withoutRun).join("\n")}\n`;
}

/** Ids, times and numbers are those of one run, and the text of documents is none of our names. */
function withoutRun(line: string): string {
  const text = line
    .replace(/[^\s"']*\/dtrag-e2e-\w+/g, "FOLDER")
    .replace(/file:\/\/\S*\/(?=examples\/)/g, "FOLDER/")
    .replace(/(by default|기본값) \/\S*dtrag/g, "$1 FOLDER")
    .replace(/\bdtrag_[\w-]+…/g, "KEY…")
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "ID")
    .replace(/\b(?=[a-f]*\d)[0-9a-f]{8,}\b/g, "ID")
    .replace(/\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d+, \d+/g, "DATE")
    .replace(/(?<!level=)\d+(?:[.,:]\d+)*(?: (?:AM|PM|ms|s|밀리초|초)\b)?/g, "N")
    .replace(/오전|오후/g, "오전/오후");
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

function shortened(lines: readonly string[], shown: number): string[] {
  const kept: string[] = [];
  /** By depth: how many of each role the element that is open there has. */
  const counts: Map<string, number>[] = [];
  let leftOut = Infinity;
  for (const line of lines) {
    const depth = line.search(/\S/) / 2;
    if (depth > leftOut) continue;
    leftOut = Infinity;
    counts.length = Math.min(counts.length, depth + 1);
    const role = REPEATED.exec(line.trim())?.[1];
    if (role) {
      const of = (counts[depth] ??= new Map());
      const count = (of.get(role) ?? 0) + 1;
      of.set(role, count);
      if (count > shown) {
        leftOut = depth;
        if (count === shown + 1) kept.push(`${"  ".repeat(depth)}- …`);
        continue;
      }
    }
    kept.push(line);
  }
  return kept;
}
