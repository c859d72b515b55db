/** The keyboard: Tab until an element has the focus, and what must hold whenever the focus moves. */
import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";

/** More than the elements of any view that Tab stops at. */
const MOST_PRESSES = 200;

type Role = Parameters<Page["getByRole"]>[0];

/**
 * Presses Tab until the element with this role and name has the focus, visibly; fails with what had it on the way.
 *
 * `back`: Shift+Tab, for what is before the focus.
 */
export async function tabTo(page: Page, role: Role, name: string | RegExp, back = false): Promise<Locator> {
  const target = page.getByRole(role, { name, exact: typeof name === "string" });
  await target.first().waitFor();
  const passed: string[] = [];
  for (let press = 0; press < MOST_PRESSES; press += 1) {
    await page.keyboard.press(back ? "Shift+Tab" : "Tab");
    const focused = target.and(page.locator(":focus"));
    if (await focused.count()) {
      expect(await focused.evaluate((element) => element.matches(":focus-visible")), `${name}: visible focus`).toBe(
        true,
      );
      return focused;
    }
    passed.push(await focusOf(page));
  }
  throw new Error(`Tab never came to the ${role} ${String(name)}. It passed: ${[...new Set(passed)].join(", ")}`);
}

/** Tab to the element, and Enter. */
export async function enterOn(page: Page, role: Role, name: string | RegExp, back = false): Promise<void> {
  await tabTo(page, role, name, back);
  await page.keyboard.press("Enter");
}

/** Waits until the element has the focus. */
export const expectFocus = (page: Page, target: Locator): Promise<void> =>
  target
    .and(page.locator(":focus"))
    .waitFor()
    .catch(async (error: unknown) => {
      throw new Error(`The focus is on ${await focusOf(page)}`, { cause: error });
    });

/** A short description of the element that has the focus. */
export const focusOf = (page: Page): Promise<string> =>
  page.evaluate(() => {
    const element = document.activeElement;
    const words = element?.getAttribute("aria-label") ?? element?.textContent ?? "";
    return `${element?.tagName.toLowerCase() ?? "nothing"} “${words.trim().slice(0, 40)}”`;
  });
