/** The pictures of README and tutorial: PICTURES=1 writes them to docs/images/. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { test } from "vitest";
import { asked, library, waitForAnswer } from "./asking";
import { close, inBrowser, open } from "./browser";

const IMAGES = join(import.meta.dirname, "../../docs/images");

async function save(page: Page, name: string): Promise<void> {
  if (!process.env.PICTURES) return;
  await mkdir(IMAGES, { recursive: true });
  await page.screenshot({ path: join(IMAGES, `${name}.png`) });
}

inBrowser("what the pictures of the documentation show", () => {
  test("an answer with its source open", async () => {
    const page = await open(asked(library.ko));
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
});
