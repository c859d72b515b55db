/** The Ask view as it looks: every state in every language, theme and width, without a finding of axe-core. */
import type { Page } from "playwright-core";
import { test } from "vitest";
import { asked, library, password, waitForAnswer, zeppelin } from "./asking";
import { close, expectAccessible, expectNoSideways, inBrowser, LOOKS, nameOf, open, picture, service } from "./browser";

async function check(page: Page, state: string, look: string): Promise<void> {
  await picture(page, `ask-${state}-${look}`);
  await expectAccessible(page);
  await expectNoSideways(page);
}

inBrowser("how Ask looks", () => {
  test.each(LOOKS.map((look) => [nameOf(look), look] as const))("%s", async (name, look) => {
    const page = await open("", look);
    await check(page, "empty", name);

    await page.goto(`${service}/${asked(library[look.language])}`);
    await waitForAnswer(page);
    await page.locator("summary").first().click();
    await check(page, "answer", name);

    await page.locator("article a[id^=source-]").first().click();
    await page.locator('mark[data-kinds~="quote"]').first().waitFor();
    await check(page, "source", name);
    await page.keyboard.press("Escape");

    await page.goto(`${service}/${asked(look.language === "ko" ? zeppelin.ko : zeppelin.en)}`);
    await waitForAnswer(page);
    await check(page, "declined", name);

    await page.locator("form button[aria-haspopup=dialog]").click();
    await page.locator("[role=treeitem]").first().click();
    await check(page, "scope", name);
    await page.keyboard.press("Escape");

    await page.keyboard.press("c");
    await page.locator("dialog li").first().waitFor();
    await check(page, "conversations", name);
    await page.keyboard.press("Escape");

    await page.keyboard.press("?");
    await page.locator("dialog fieldset").first().waitFor();
    await check(page, "options", name);
    await close(page);
  });

  test("an answer from a PDF names the page, and follows the width of the window", async () => {
    const page = await open(asked(password));
    await waitForAnswer(page);
    await page.locator("article a[id^=source-]").first().click();
    await page.getByText(/^Page [12]$/).waitFor();
    await page.setViewportSize({ width: 320, height: 640 });
    await page.locator("dialog mark").first().waitFor();
    await check(page, "source-pdf", "320");
    await close(page);
  });
});
