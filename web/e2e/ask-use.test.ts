/** The Ask view in use, over a real service. */
import { readFile } from "node:fs/promises";
import type { Page, Route } from "playwright-core";
import { expect, test } from "vitest";
import { askLinked, leave, library, linkTo, openAsked, password, waitForAnswer, zeppelin } from "./asking";
import { close, expectAccessible, expectNoSideways, inBrowser, open, picture, service } from "./browser";

const marks = (page: Page) => page.locator("article a[id^=source-]");
const focused = (page: Page) => page.evaluate(() => document.activeElement?.id ?? "");

inBrowser("Ask in use", () => {
  test("a source by keyboard: preview, quotation equal and in view, and back to its mark", async () => {
    const page = await open("");
    await page.keyboard.press("/");
    await page.keyboard.type(library.ko);
    await page.keyboard.press("Enter");
    await waitForAnswer(page);
    await page.keyboard.press("Shift+Tab");
    for (let step = 0; step < 40 && !(await focused(page)).startsWith("source-"); step += 1)
      await page.keyboard.press("Shift+Tab");
    await page.locator("[role=tooltip]").waitFor();
    await page.keyboard.press("Escape");
    await page.locator("[role=tooltip]").waitFor({ state: "detached" });
    const mark = await focused(page);
    await page.keyboard.press("Enter");
    const quote = page.locator('mark[data-kinds~="quote"]');
    await quote.first().waitFor();
    const shown = (await quote.allTextContents()).join("");
    const source = await keptSource(page);
    expect(shown).toBe(source.quote);
    const context = await page.locator('mark[data-kinds~="context"]').allTextContents();
    expect(context).toEqual(source.context.map((span) => span.text));
    expect(await quote.first().evaluate(inView)).toBe(true);
    await page.keyboard.press("Escape");
    await quote.first().waitFor({ state: "detached" });
    expect(await focused(page)).toBe(mark);
    await close(page);
  });

  test("the article of a regulation has its amendments and what it cites", async () => {
    const page = await openAsked(leave);
    await waitForAnswer(page);
    await page.locator("article a[id^=source-]").first().click();
    await page.locator('mark[data-kinds~="quote"]').first().waitFor();
    await page.getByText("Amendments and references of 학칙 제12조").click();
    await page.getByText("2024-03-01 개정 제1항").waitFor();
    expect(await page.locator("dl").innerText()).toContain("학칙 제3조");
    await close(page);
  });

  test("rows of a table are a table in the answer and in the source; equal labels are told apart", async () => {
    const page = await openAsked("성적장학금 우수는 얼마를 지급하나요?");
    await waitForAnswer(page);
    const answer = page.locator("article");
    const header = answer.getByRole("columnheader", { name: "지급액" });
    await header.waitFor();
    expect(await answer.getByRole("rowheader").allTextContents()).toContain("성적장학금 우수");
    expect(await answer.innerText()).not.toContain(" | ");
    const labels = await answer.locator("section ol a").allInnerTexts();
    expect(new Set(labels.map((label) => label.replace(/^\d+\s+/, ""))).size).toBe(labels.length);
    const row = answer.getByRole("row", { name: /^성적장학금 우수/ });
    await row.locator("a[id^=source-]").hover();
    await page.getByRole("tooltip").getByRole("cell", { name: "등록금의 50%" }).waitFor();
    await row.locator("a[id^=source-]").click();
    const source = page.getByRole("complementary");
    await source.locator('tr mark[data-kinds~="quote"]').first().waitFor();
    expect(await source.getByRole("columnheader").allInnerTexts()).toEqual(
      await answer.getByRole("columnheader").allInnerTexts(),
    );
    await expectAccessible(page);
    await close(page);
  });

  test("an answer from a PDF names the page, and follows the width of the window", async () => {
    const page = await openAsked(password);
    await waitForAnswer(page);
    const passage = page.getByRole("region", { name: "Source 1: Information Security, Accounts and passwords" });
    expect(await passage.innerText()).toMatch(/Page 1\s+A password has at least 14 .+Two-factor authentication/s);
    expect(await passage.locator("strong").allInnerTexts()).toEqual([
      "A password has at least 14 characters and is used for one account only.",
    ]);
    expect(await page.getByRole("region", { name: "Sources" }).count()).toBe(0);
    await page.locator("article a[id^=source-]").first().click();
    await page
      .getByRole("complementary")
      .getByText(/^Page [12]$/)
      .waitFor();
    await page.setViewportSize({ width: 320, height: 640 });
    await page.locator("dialog mark").first().waitFor();
    await picture(page, "ask-source-pdf-320");
    await expectAccessible(page);
    await expectNoSideways(page);
    await close(page);
  });

  test("a follow-up, back, reload: the address is the state", async () => {
    const page = await openAsked(library.en);
    await waitForAnswer(page);
    await page.getByRole("textbox", { name: "Question" }).fill("and for part-time staff?");
    await page.keyboard.press("Enter");
    await page.locator("article").nth(1).waitFor();
    await waitForAnswer(page);
    await page.reload();
    await page.locator("article").nth(1).waitFor();
    await waitForAnswer(page);
    expect(await page.locator("article").count()).toBe(2);
    expect(await marks(page).count()).toBeGreaterThan(0);
    await page.goBack();
    expect(new URL(page.url()).hash).toContain("full-time");
    expect(await page.locator("article").count()).toBe(2);
    await close(page);
  });

  test("each further question is scrolled to the top", async () => {
    const page = await openAsked(leave);
    await waitForAnswer(page);
    for (const question of ["Who approves remote work?", library.en, "How long is parental leave?"]) {
      await page.getByRole("textbox", { name: "Question" }).fill(question);
      await page.keyboard.press("Enter");
      await page.locator('article[aria-busy="false"]', { hasText: question }).locator("details").first().waitFor();
      const heading = page.locator("article h2", { hasText: question });
      await expect.poll(() => heading.evaluate((element) => element.getBoundingClientRect().top)).toBeLessThan(400);
    }
    await close(page);
  });

  test("conversations are beside the answer: searched, renamed, saved as a file, deleted", async () => {
    const page = await openAsked("Who approves remote work?");
    await waitForAnswer(page);
    await page.getByRole("button", { name: "New question" }).click();
    const beside = page.getByRole("complementary", { name: "Conversations" });
    const talk = beside.getByRole("listitem").filter({ hasText: "Who approves remote work?" }).first();
    await talk.getByRole("link").click();
    await page.locator("article", { hasText: "Who approves remote work?" }).waitFor();
    await page.keyboard.press("c");
    await page.keyboard.type("REMOTE work");
    await expect.poll(() => beside.getByRole("listitem").filter({ hasText: "annual leave" }).count()).toBe(0);
    await talk.getByRole("button").click();
    const inFocus = () => page.evaluate(() => document.activeElement?.textContent);
    await expect.poll(inFocus).toBe("Rename");
    await page.keyboard.press("Enter");
    await page.getByLabel("Name", { exact: true }).fill("Working at home");
    await page.keyboard.press("Enter");
    const named = beside.getByRole("listitem").filter({ hasText: "Working at home" });
    await named.getByRole("button").click();
    await expectAccessible(page);
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      named.getByRole("button", { name: "Export", exact: true }).click(),
    ]);
    expect(file.suggestedFilename()).toBe("Working-at-home.md");
    const saved = await readFile(await file.path(), "utf8");
    expect(saved).toMatch(/^# Working at home\n\n## Who approves remote work\?\n/);
    expect(saved).toMatch(/\[1\] .+: “/);
    await named.getByRole("button").click();
    await named.getByRole("button", { name: "Delete", exact: true }).click();
    await named.getByRole("button", { name: /^Delete “Working/ }).click();
    await page.getByRole("heading", { name: "Ask your documents" }).waitFor();
    await expect.poll(() => named.count()).toBe(0);
    await page.getByRole("searchbox", { name: "Search conversations" }).fill("zeppelin");
    await page.getByText("No conversation has this text").waitFor();
    await expect.poll(() => page.evaluate(() => document.activeElement?.closest("aside") !== null)).toBe(true);
    await close(page);
  });

  test("on a phone the conversations are a drawer", async () => {
    const page = await openAsked("Who approves remote work?", { width: 390 });
    await waitForAnswer(page);
    await page.getByRole("button", { name: "Conversations" }).click();
    const talk = page.getByRole("dialog").getByRole("listitem").first();
    await talk.getByRole("button").click();
    await expectAccessible(page);
    await expectNoSideways(page);
    await picture(page, "ask-talks-390");
    await page.keyboard.press("Escape");
    await talk.getByRole("link").click();
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await close(page);
  });

  test("the scope limits what is searched, and is part of the link", async () => {
    const page = await open("");
    await page.getByRole("button", { name: "All documents" }).click();
    await page.getByRole("searchbox").fill("univ");
    await page.getByRole("treeitem", { name: "University" }).click();
    await page.getByRole("button", { name: "Done" }).click();
    expect(new URL(page.url()).hash).toContain("scope=Samples%2FUniversity");
    await page.getByRole("textbox", { name: "Question" }).fill(library.en);
    await page.keyboard.press("Enter");
    await waitForAnswer(page);
    expect(await page.locator("article").innerText()).toContain("Not answered");
    await page.getByRole("button", { name: "Ask in all documents" }).click();
    await page.locator("article", { hasText: "26 days" }).waitFor();
    await close(page);
  });

  test("a declined question says in Korean what was searched, and a near heading opens its passage", async () => {
    const page = await openAsked(zeppelin.en, { language: "ko" });
    await page.getByText(/볼 수 있는 구절 [\d,]+개를 찾아보았습니다/).waitFor();
    const card = page.locator("article");
    await card.locator("details summary").first().click();
    await card.getByText("가장 가까운 제목:").waitFor();
    for (const text of await card.locator("details [lang]").allTextContents()) expect(text).toMatch(/[가-힣]/);
    await card.locator("ul a").first().click();
    await page.waitForURL(/#\/documents\/[^?]+\?passage=\d+-\d+$/);
    await page.getByRole("tab", { name: "텍스트" }).or(page.locator("main h1")).first().waitFor();
    await close(page);
  });

  test("a vote and its reason are stored, shown again, changed and taken back, and move nothing", async () => {
    const page = await openAsked(library.en);
    await waitForAnswer(page);
    const height = () => page.locator("article").evaluate((card) => card.getBoundingClientRect().height);
    const before = await height();
    const stored = () => page.waitForResponse((response) => response.url().endsWith("/chat/feedback"));
    const [voted] = await Promise.all([stored(), page.getByRole("button", { name: "The answer is wrong" }).click()]);
    expect(voted.status()).toBe(200);
    await page.getByRole("button", { name: "Say why" }).click();
    await page.getByLabel("What is wrong?").fill("It is 27 now.");
    await expectAccessible(page);
    const [told] = await Promise.all([stored(), page.getByRole("button", { name: "Send" }).click()]);
    expect(told.request().postDataJSON()).toMatchObject({ thumbs: "down", reason: "It is 27 now." });
    const wrong = (pressed: boolean) => page.getByRole("button", { name: "The answer is wrong", pressed });
    await wrong(true).waitFor();
    expect(await height()).toBe(before);
    await expectAccessible(page);
    await page.reload();
    await wrong(true).waitFor();
    await page.evaluate(() => sessionStorage.clear()); // as in another tab: the conversation comes from the service
    await page.reload();
    await page.getByText("The sources of earlier answers are not stored.").waitFor();
    await page.getByRole("button", { name: "Say why" }).click();
    expect(await page.getByLabel("What is wrong?").inputValue()).toBe("It is 27 now.");
    await page.getByRole("button", { name: "Cancel" }).click();
    await Promise.all([stored(), page.getByRole("button", { name: "The answer is right" }).click()]);
    await page.getByRole("button", { name: "The answer is right", pressed: true }).click();
    await page.getByRole("button", { name: "The answer is right", pressed: false }).waitFor();
    await page.reload();
    await wrong(false).waitFor();
    await close(page);
  });

  test("stopping an answer, and asking again", async () => {
    const page = await open("");
    let held: Route | undefined;
    await page.route("**/chat/stream", (route) => (held = route));
    await page.goto(`${service}/${linkTo(library.en)}`);
    await askLinked(page);
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("You stopped this answer.").waitFor();
    await expectAccessible(page);
    expect(held).toBeDefined();
    await page.unroute("**/chat/stream");
    await page.getByRole("button", { name: "Ask again" }).click();
    await waitForAnswer(page);
    expect(await page.locator("article").count()).toBe(1);
    await close(page);
  });
});

interface Kept {
  answer: { sources: { quote: string; context: { text: string }[] }[] };
}

async function keptSource(page: Page): Promise<Kept["answer"]["sources"][number]> {
  const text = await page.evaluate(() => sessionStorage.getItem("dtrag.answers") ?? "[]");
  const source = (JSON.parse(text) as Kept[]).at(-1)?.answer.sources[0];
  if (!source) throw new Error("The answer has no source.");
  return source;
}

function inView(element: Element): boolean {
  const [box] = element.getClientRects(); // its first line
  if (!box) return false;
  const at = document.elementFromPoint(box.left + 2, box.top + box.height / 2);
  return at !== null && element.contains(at);
}
