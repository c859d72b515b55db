/**
 * Figures of the page, printed and never compared with a limit: `npm run e2e:figures` (FIGURES=1).
 *
 * - From navigation to a usable question box, with an empty cache each time.
 * - The heap of the page after 200 interactions, each time after a forced garbage collection.
 */
import { loadavg } from "node:os";
import { expect, test } from "vitest";
import type { CDPSession, Page } from "playwright-core";
import { leave, library, password, waitForAnswer } from "./asking";
import { close, inBrowser, open, openPage, service } from "./browser";

const NAVIGATIONS = 20;
const ROUNDS = 50;
/** Of one round: a question, its source, a search, another view. */
const INTERACTIONS = ROUNDS * 4;
const QUESTIONS = [library.en, leave, password, library.ko];
const SEARCHES = ["parental leave days", "휴학", "laptop", "annual leave"];
const VIEWS = ["documents", "taxonomy", "regulations", "agents", "trace", "review", "keys", "audit", "settings"];

/** Runs before the scripts of the page: notes when the question box can be typed into. */
const WATCH = `new MutationObserver((_, observer) => {
  const box = document.querySelector("form textarea");
  if (!box || box.disabled || box.getClientRects().length === 0) return;
  window.usable = performance.now();
  observer.disconnect();
}).observe(document, { childList: true, subtree: true });`;

const load = () => loadavg().map((value) => Number(value.toFixed(2)));

inBrowser("figures", () => {
  test.runIf(process.env.FIGURES)("time to a usable question box", { timeout: 300_000, retry: 0 }, async () => {
    const times: number[] = [];
    const before = load();
    for (let count = 0; count < NAVIGATIONS; count += 1) {
      // A context of its own: nothing is cached, and there are no cookies.
      const page = await openPage(`${service}/`, {}, [service], WATCH);
      const time = await page.waitForFunction(() => (window as unknown as { usable?: number }).usable);
      times.push(Number(await time.jsonValue()));
      await page.locator("form textarea").pressSequentially("a");
      expect(await page.locator("form textarea").inputValue()).toBe("a");
      await close(page);
    }
    times.sort((one, other) => one - other);
    const milliseconds = (at: number) => `${Math.round(times[at] ?? NaN)} ms`;
    console.log("Navigation to a usable question box", {
      navigations: times.length,
      median: milliseconds(Math.floor(times.length / 2)),
      worst: milliseconds(times.length - 1),
      loadBefore: before,
      loadAfter: load(),
    });
  });

  test.runIf(process.env.FIGURES)("heap after 200 interactions", { timeout: 600_000, retry: 0 }, async () => {
    const page = await open("#/ask");
    const debug = await page.context().newCDPSession(page);
    const figures = { opened: await heapOf(page, debug) } as Record<string, Heap>;
    await round(page, 0);
    figures.afterOneRound = await heapOf(page, debug);
    for (let count = 0; count < ROUNDS; count += 1) await round(page, count);
    figures[`after${INTERACTIONS}`] = await heapOf(page, debug);
    console.log("Heap after forced garbage collections", figures, { load: load() });
    await close(page);
  });
});

interface Heap {
  megabytes: number;
  nodes: number;
  listeners: number;
}

/** Measured in an empty Ask view. */
async function heapOf(page: Page, debug: CDPSession): Promise<Heap> {
  await go(page, "#/ask");
  await page.locator("form textarea").waitFor();
  // What one collection frees can free more in the next.
  for (let count = 0; count < 3; count += 1) await debug.send("HeapProfiler.collectGarbage");
  const { usedSize } = await debug.send("Runtime.getHeapUsage");
  const { nodes, jsEventListeners } = await debug.send("Memory.getDOMCounters");
  return { megabytes: Number((usedSize / 1e6).toFixed(2)), nodes, listeners: jsEventListeners };
}

async function round(page: Page, count: number): Promise<void> {
  await go(page, "#/ask");
  const box = page.getByRole("textbox", { name: "Question" });
  await box.fill(QUESTIONS[count % QUESTIONS.length] ?? "");
  await box.press("Enter");
  await waitForAnswer(page);
  await page.locator("article a[id^=source-]").first().click();
  await page.locator('mark[data-kinds~="quote"]').first().waitFor();
  await go(page, `#/search?q=${encodeURIComponent(SEARCHES[count % SEARCHES.length] ?? "")}`);
  await page.locator("article table").first().waitFor();
  const view = VIEWS[count % VIEWS.length] ?? "";
  await go(page, `#/${view}`);
  await page.locator(`header nav a[aria-current=page][href$="/${view}"]`).waitFor();
  await page.waitForFunction(() => !document.querySelector("main [role=status] .quiet, main [aria-busy=true]"));
}

const go = (page: Page, hash: string) => page.evaluate((value) => (location.hash = value), hash);
