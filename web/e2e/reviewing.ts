/** What a reviewer does on the page, for the tests of the review queue. */
import type { Page } from "playwright-core";

/** Adds the first passage that a search finds, and waits until it is picked. */
export async function findAndPick(page: Page, words: string): Promise<void> {
  await page.getByText("Find other passages").click();
  await page.getByLabel("Words of the passage").fill(words);
  await page.getByRole("search").getByRole("button", { name: "Search" }).click();
  const picked = await page.locator("[aria-labelledby=passages-title] ul").first().locator("input:checked").count();
  await page.locator("details li input[type=checkbox]").first().click();
  await page.getByRole("button", { name: `Correct with ${picked + 1} passage` }).waitFor();
}

export async function useShortcuts(page: Page, on: boolean): Promise<void> {
  await page.getByRole("button", { name: "Options" }).click();
  await page.getByLabel("Use shortcuts").setChecked(on);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
}

/** Waits until an element is wholly in the window. */
export async function inView(page: Page, selector: string): Promise<void> {
  await page.waitForFunction((found) => {
    const { top, bottom } = document.querySelector(found)?.getBoundingClientRect() ?? { top: -1, bottom: 0 };
    return top >= 0 && bottom <= innerHeight;
  }, selector);
}
