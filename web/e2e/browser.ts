/** Pages of a real browser, which note what must not happen: console errors and requests to other hosts. */
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import type axeCore from "axe-core";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject } from "vitest";

export const LANGUAGES = ["en", "ko"] as const;
export const THEMES = ["light", "dark"] as const;
export const WIDTHS = [360, 1280] as const;
const HEIGHT = 800;
const PICTURES = join(import.meta.dirname, "pictures");
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

export interface Look {
  language?: (typeof LANGUAGES)[number];
  theme?: (typeof THEMES)[number];
  width?: number;
}

/** Every combination of language, theme and width. */
export const LOOKS: Required<Look>[] = LANGUAGES.flatMap((language) =>
  THEMES.flatMap((theme) => WIDTHS.map((width) => ({ language, theme, width }))),
);

export const skipped = inject("skipped");
export const service = inject("service");
let browser: Browser;
const problems = new WeakMap<Page, string[]>();

/** `describe` for tests in the browser: skipped with the reason where there is none. `options` are its command line's. */
export function inBrowser(name: string, tests: () => void, options: readonly string[] = []): void {
  describe.skipIf(skipped !== "")(name, () => {
    beforeAll(async () => {
      browser = await chromium.launch({
        executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
        args: process.getuid?.() === 0 ? ["--no-sandbox", ...options] : [...options],
      });
    });
    afterAll(() => browser.close());
    tests();
  });
}

/** A page in a context of its own (own cookies and storage). `at` is a fragment: "#/ask?q=…". */
export async function open(at: string, look: Look = {}, url = service): Promise<Page> {
  const page = await openPage(`${url}/${at}`, look, [url]);
  await page.locator("h1").first().waitFor();
  return page;
}

/** Any page; `before` is a script that runs before its own. Requests to other hosts than those of `allowed` are noted. */
export async function openPage(address: string, look: Look, allowed: readonly string[], before = ""): Promise<Page> {
  const context = await browser.newContext({
    viewport: { width: look.width ?? 1280, height: HEIGHT },
    locale: look.language === "ko" ? "ko-KR" : "en-US",
    colorScheme: look.theme ?? "light",
    reducedMotion: "reduce",
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const page = await context.newPage();
  watch(
    page,
    allowed.map((url) => new URL(url).origin),
  );
  if (before) await page.addInitScript(before);
  await page.goto(address);
  return page;
}

function watch(page: Page, allowed: readonly string[]): void {
  const seen: string[] = [];
  problems.set(page, seen);
  page.on("pageerror", (error) => seen.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) seen.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    const address = new URL(request.url());
    if (!allowed.includes(address.origin) && address.protocol !== "data:") seen.push(`foreign: ${request.url()}`);
  });
}

/** What the console said and which other hosts were asked; `allowed` for refusals that a test provokes. */
export function expectQuiet(page: Page, allowed?: RegExp): void {
  expect((problems.get(page) ?? []).filter((line) => !allowed?.test(line))).toEqual([]);
}

/** The tags and rules of axe-core: WCAG 2.2 AA and best practices; and those of its rules that look at colours. */
const EVERY_RULE = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
export const COLOURS = ["color-contrast", "link-in-text-block"];

/** No finding of axe-core. */
export async function expectAccessible(page: Page, runOnly: string[] = EVERY_RULE): Promise<void> {
  // Through the debugger: the Content-Security-Policy of the page does not apply, and stays as it is.
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(await readFile(AXE, "utf8"));
  const findings = await page.evaluate(async (only) => {
    const { axe } = window as unknown as { axe: typeof axeCore };
    const result = await axe.run(document, { runOnly: only, resultTypes: ["violations"] });
    return result.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" | ")}`);
  }, runOnly);
  expect(findings).toEqual([]);
}

/** Nothing is wider than the window. */
export async function expectNoSideways(page: Page): Promise<void> {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(over).toBeLessThanOrEqual(0);
}

/** With PICTURES=1: e2e/pictures/NAME.png, to look at. */
export async function picture(page: Page, name: string): Promise<void> {
  if (!process.env.PICTURES) return;
  await mkdir(PICTURES, { recursive: true });
  await page.screenshot({ path: join(PICTURES, `${name}.png`) });
}

export const nameOf = (look: Required<Look>): string => `${look.language}-${look.theme}-${look.width}`;

/** Close the page with its context, after checking that it was quiet. */
export async function close(page: Page, allowed?: RegExp): Promise<void> {
  expectQuiet(page, allowed);
  await page.context().close();
}
