/** The pictures of README, tutorial and guides: PICTURES=1 writes them to docs/images/. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { test } from "vitest";
import { library, openAsked, waitForAnswer } from "./asking";
import { close, inBrowser, open, openPage } from "./browser";
import { startFilled } from "./filled";
import { reach, STATES } from "./view-states";

const IMAGES = join(import.meta.dirname, "../../docs/images");
/** Views of the guides; looks.test.ts has them in every language, theme and width. */
const SHOWN = ["regulation-article", "evaluation-compared", "trace-one"];
const DRAFT = new URLSearchParams([
  ["op", JSON.stringify({ op: "add", path: ["Samples", "Archive"] })],
  ["op", JSON.stringify({ op: "rename", path: ["Samples", "University"], name: "Campus" })],
  ["at", "Samples/Archive"],
]);

async function save(page: Page, name: string): Promise<void> {
  if (!process.env.PICTURES) return;
  await mkdir(IMAGES, { recursive: true });
  await page.screenshot({ path: join(IMAGES, `${name}.png`) });
}

inBrowser("what the pictures of the documentation show", () => {
  test("an answer with its source open", async () => {
    const page = await openAsked(library.ko);
    await waitForAnswer(page);
    await page.locator("article a[id^=source-]").first().click();
    await page.locator('mark[data-kinds~="quote"]').first().waitFor();
    await page.waitForFunction(() => !document.querySelector("[role=status] .quiet"));
    await save(page, "ask");
    await close(page);
  });

  test("a search with the scores of every stage", async () => {
    const page = await open(`#/search?${new URLSearchParams({ q: library.en }).toString()}`);
    await page.locator("article table").first().waitFor();
    await save(page, "search");
    await close(page);
  });

  test.runIf(process.env.PICTURES)("the views of the guides", { timeout: 300_000 }, async () => {
    const filled = await startFilled();
    const page = await openPage("about:blank", {}, [filled.url]);
    await page.context().request.post(`${filled.url}/session`, { data: { key: filled.secret } });
    await page.goto(filled.url);
    const draft = { name: "taxonomy-draft", at: () => `#/taxonomy?${DRAFT.toString()}`, ready: "[role=treeitem]" };
    for (const state of [draft, ...STATES.filter(({ name }) => SHOWN.includes(name))]) {
      await page.evaluate((hash) => (location.hash = hash), state.at(filled, "en"));
      await reach(page, state);
      await save(page, state.name.replace("-one", ""));
    }
    await close(page);
    await filled.stop();
  });
});
