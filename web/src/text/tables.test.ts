/** Every text is there in both languages, says the same values, and is used. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { VIEWS } from "../app/views";
import { tables as common } from "./common";

type Table = Record<string, string>;
interface Tables {
  en: Table;
  ko: Table;
}

const SOURCE = join(import.meta.dirname, "..");
const modules = import.meta.glob<{ tables: Tables }>(
  ["../views/*/text.ts", "../parts/*/text.ts", "../widget/text.ts"],
  { eager: true },
);
const TABLES: [name: string, folder: string, tables: Tables][] = [
  ["common", ".", common],
  ...Object.entries(modules).map(([path, module]): [string, string, Tables] => {
    const folder = path.replace("..", "").replace("/text.ts", "");
    return [folder, folder, module.tables];
  }),
];
/** Words that are the same in both languages. */
const SAME = /^[\W\d]*(?:\{[^}]*\}[\W\d]*)*(?:PDF|URL|JSON|CSV|curl|BM25|MRR)?[\W\d]*$/;

test.each(TABLES)("both tables of %s have the same keys", (_, __, { en, ko }) => {
  expect(Object.keys(ko).sort()).toEqual(Object.keys(en).sort());
});

test.each(TABLES)("every Korean text of %s is Korean", (_, __, { en, ko }) => {
  const foreign = Object.keys(ko).filter((key) => !/[가-힣]/.test(ko[key] ?? "") && !SAME.test(en[key] ?? ""));
  expect(foreign).toEqual([]);
});

test.each(TABLES)("both texts of %s name the same values", (_, __, { en, ko }) => {
  const names = (text = "") => [...new Set([...text.matchAll(/\{(\w+)/g)].map((match) => match[1]))].sort();
  const different = Object.keys(en).filter((key) => names(en[key]).join() !== names(ko[key]).join());
  expect(different).toEqual([]);
});

test.each(TABLES)("every text of %s is used", (name, folder, { en }) => {
  const source = sourceOf(join(SOURCE, folder), name === "common");
  const unused = Object.keys(en).filter((key) => !source.includes(`"${key}"`) && !usedByPrefix(source, key));
  expect(unused).toEqual([]);
});

test("every view has a name and a letter of its own", () => {
  for (const view of VIEWS) expect(common.en).toHaveProperty([`view.${view.id}`]);
  expect(new Set(VIEWS.map((view) => view.letter)).size).toBe(VIEWS.length);
});

/** `t(`view.${id}`)` uses every key that begins with "view.". */
function usedByPrefix(source: string, key: string): boolean {
  const prefix = key.slice(0, key.lastIndexOf(".") + 1);
  return prefix !== "" && source.includes(`\`${prefix}\${`);
}

function sourceOf(folder: string, skipTables: boolean): string {
  return readdirSync(folder)
    .map((name) => join(folder, name))
    .map((path) => {
      if (statSync(path).isDirectory()) return sourceOf(path, skipTables);
      const isCode = /\.tsx?$/.test(path) && !/\.test\.tsx?$|text\.ts$|common\.ts$|schema\.ts$/.test(path);
      return isCode ? readFileSync(path, "utf8") : "";
    })
    .join("\n");
}
