/**
 * Every view in each language, theme and width: no finding of axe-core, nothing wider than the window (at 320 px, too), a
 * quiet console, no request to another host; and what a screen reader finds in it, as stored in names/ (`vitest -u` stores
 * new ones: read them).
 *
 * One page a language goes through all views, so that this takes a minute. States that are only reached by doing something,
 * such as errors, are in the tests of their view.
 */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFailed, test } from "vitest";
import {
  COLOURS,
  expectAccessible,
  expectNoSideways,
  expectQuiet,
  inBrowser,
  LANGUAGES,
  openPage,
  picture,
  skipped,
  THEMES,
  WIDTHS,
} from "./browser";
import { startFilled, type Filled } from "./filled";
import { namesOf } from "./names";
import { reach, STATES } from "./view-states";

type Language = (typeof LANGUAGES)[number];
/** Of the browser itself, about the session that does not exist yet. */
const SIGNED_OUT = /401 \(Unauthorized\)/;
const CASES = STATES.flatMap((state) => LANGUAGES.map((language) => [state.name, language, state] as const));
let filled: Filled;
const pages = new Map<Language, Page>();

beforeAll(async () => {
  if (!skipped) filled = await startFilled();
});
afterAll(() => filled?.stop());

inBrowser("every view", () => {
  test.each(LANGUAGES)("signing in, in %s", async (language) => {
    const page = await openPage(filled.url, { language }, [filled.url]);
    await page.locator("form input").waitFor();
    await expectLooks(page, `sign-in-${language}`, "main");
    await page.locator("form input").fill(filled.secret);
    await page.keyboard.press("Enter");
    await page.locator("form textarea").waitFor();
    await expect(await namesOf(page, "header >> visible=true", Infinity)).toMatchFileSnapshot(
      `names/navigation-${language}.yaml`,
    );
    expectQuiet(page, SIGNED_OUT);
    pages.set(language, page);
  });

  test.each(CASES)("%s in %s", async (name, language, state) => {
    const page = pages.get(language) ?? (await signedIn(language));
    onTestFailed(async () => {
      await picture(page, `failed-${name}-${language}`);
      await page.context().close();
      pages.delete(language);
    });
    await page.evaluate((hash) => (location.hash = hash), state.at(filled, language));
    await reach(page, state);
    await expectLooks(page, `${name}-${language}`, state.dialog ? "dialog[open]" : "main");
    if (state.dialog) await page.keyboard.press("Escape");
    expectQuiet(page, SIGNED_OUT);
  });
});

async function signedIn(language: Language): Promise<Page> {
  const page = await openPage("about:blank", { language }, [filled.url]);
  await page.context().request.post(`${filled.url}/session`, { data: { key: filled.secret } });
  await page.goto(filled.url);
  await page.locator("form textarea").waitFor();
  pages.set(language, page);
  return page;
}

async function expectLooks(page: Page, name: string, part: string): Promise<void> {
  await expect(await namesOf(page, part)).toMatchFileSnapshot(`names/${name}.yaml`);
  for (const width of [...WIDTHS.toReversed(), 320]) {
    await page.setViewportSize({ width, height: 800 });
    await drawn(page);
    await expectNoSideways(page);
    if (width === 320) continue;
    for (const colorScheme of THEMES) {
      await page.emulateMedia({ colorScheme });
      await picture(page, `${name}-${colorScheme}-${width}`);
      // The theme changes colours and nothing else.
      await expectAccessible(page, colorScheme === "light" ? undefined : COLOURS);
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1280, height: 800 });
  await drawn(page);
}

/** What observes the size of the window has been drawn. */
async function drawn(page: Page): Promise<void> {
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}
