import { expect, test } from "vitest";
import { close, expectAccessible, expectNoSideways, inBrowser, LOOKS, nameOf, open, picture } from "./browser";

const QUESTION = "휴학은 최대 몇 학기까지 할 수 있나요?";
const asked = (question: string) => `#/ask?q=${encodeURIComponent(question)}`;

inBrowser("ask", () => {
  test.each(LOOKS.map((look) => [nameOf(look), look] as const))("%s", async (name, look) => {
    const page = await open("", look);
    await picture(page, `ask-empty-${name}`);
    await expectAccessible(page);
    await page.goto(page.url().split("#")[0] + asked(QUESTION));
    await page.locator("article a[aria-label]").first().waitFor();
    await expectAccessible(page);
    await expectNoSideways(page);
    await picture(page, `ask-answer-${name}`);
    await close(page);
  });

  test("a question is asked with the keyboard alone", async () => {
    const page = await open("");
    await page.keyboard.press("/");
    await page.keyboard.type("How many days of paid annual leave does a full-time employee have?");
    await page.keyboard.press("Enter");
    await page.locator("article a[aria-label]").first().waitFor();
    expect(await page.locator("article").innerText()).toContain("26 days");
    await close(page);
  });
});
