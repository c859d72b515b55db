/** Script that tests of attacks store, and what the page must make of it: text. */
import type { Page } from "playwright-core";
import { expect } from "vitest";

export const SCRIPT = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>';

/** The script is shown as text; the page made no element of it and executed nothing. */
export async function expectText(page: Page): Promise<void> {
  await page.getByText("onerror=").filter({ visible: true }).first().waitFor({ timeout: 15_000 });
  const made = await page.evaluate(() => ({
    hit: "hit" in window,
    elements: document.querySelectorAll("#app img, #app script, #app iframe, a[href^='javascript:' i]").length,
  }));
  expect(made).toEqual({ hit: false, elements: 0 });
}
