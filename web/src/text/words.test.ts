/** One word for one thing: what docs/index.ko.md and the guides call it, everywhere on the Korean page. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { tables as common } from "./common";

const ROOT = join(import.meta.dirname, "../../..");
const TEXTS = join(ROOT, "src/dtrag/delivery/texts");
/** The word that is used, and what must not be used for it. */
const WORDS: Record<string, RegExp> = {
  신뢰도: /확신도|확신이|확신 계산/,
  "검토 목록": /검토 대기열|검토 큐/,
  "실행 기록": /추적 기록|트레이스/,
  "사례 기억": /사례 메모리/,
  벡터: /의미 검색|의미로 (?:찾|비교)|의미가 비슷한/,
};

const modules = import.meta.glob<{ tables: Record<"en" | "ko", Record<string, string>> }>(
  ["../views/**/text.ts", "../widget/text.ts"],
  { eager: true },
);
const SOURCES: [name: string, text: string][] = [
  ["common", Object.values(common.ko).join("\n")],
  ["part-names", readFileSync(join(import.meta.dirname, "part-names.ts"), "utf8")],
  ...Object.entries(modules).map(([path, { tables }]): [string, string] => [path, Object.values(tables.ko).join("\n")]),
  ...readdirSync(TEXTS)
    .filter((name) => name.endsWith(".toml"))
    .map((name): [string, string] => [name, readFileSync(join(TEXTS, name), "utf8")]),
  ...["README.ko.md", "docs/index.ko.md"].map((name): [string, string] => [
    name,
    readFileSync(join(ROOT, name), "utf8"),
  ]),
];

test("only Settings, which administrators see, names variables of the environment", () => {
  const english = Object.entries(modules).map(([path, { tables }]): [string, string] => [
    path,
    Object.values(tables.en).join("\n"),
  ]);
  const shown = [...SOURCES, ["common en", Object.values(common.en).join("\n")] as [string, string], ...english];
  const naming = shown.flatMap(([name, text]) => {
    const variable = /\b[A-Z]{2,}_[A-Z_]+\b/.exec(text)?.[0];
    return variable === undefined || /settings|README|index/.test(name) ? [] : [`${name}: ${variable}`];
  });
  expect(naming).toEqual([]);
});

test.each(SOURCES)("%s has one word for one thing", (_, text) => {
  const wrong = Object.entries(WORDS).flatMap(([word, others]) => {
    const other = others.exec(text)?.[0];
    return other === undefined ? [] : [`${other}: ${word}`];
  });
  expect(wrong).toEqual([]);
});
