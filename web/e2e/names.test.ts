/** What a screen reader finds in the Ask view: roles and names, as stored in names/. `vitest -u` stores new ones. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { asked, leave, waitForAnswer } from "./asking";
import { close, inBrowser, LANGUAGES, open } from "./browser";

inBrowser("accessible names", () => {
  test.each(LANGUAGES)("of Ask in %s", async (language) => {
    const page = await open("", { language });
    await page.getByText(language === "ko" ? /문서 \d+개/ : /\d+ documents/).waitFor();
    await expect(await names(page)).toMatchFileSnapshot(`names/ask-empty-${language}.yaml`);
    await close(page);

    const other = await open(asked(leave), { language });
    await waitForAnswer(other);
    await expect(await names(other)).toMatchFileSnapshot(`names/ask-answer-${language}.yaml`);
    await close(other);
  });
});

/** Without addresses, and without the numbers of a run: probability, notes. */
async function names(page: Page): Promise<string> {
  const snapshot = await page.locator("main").ariaSnapshot();
  return snapshot
    .split("\n")
    .filter((line) => !line.includes("/url:"))
    .map((line) => (line.includes("- group:") ? line.replace(/\d+/g, "N") : line))
    .join("\n");
}
