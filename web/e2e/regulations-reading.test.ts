/** A regulation on one page: its addresses, marks, editions, tables, and a book of many over a service of its own. */
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { close, expectAccessible, expectNoSideways, inBrowser, open, picture, skipped } from "./browser";
import { VEHICLES as NAME } from "./editions";
import { addEditions, addFiles, expectAt } from "./reading";
import { startService, type Service } from "./service";
import { REFUSED } from "./states";

const SENTENCE = "이 항목에 관하여 필요한 사항은 위원회의 심의를 거쳐 총장이 따로 정한다. ";
const at = (fragment: string) => encodeURI(fragment);
let own: Service | undefined;
const url = () => own?.url ?? "";

beforeAll(async () => {
  if (skipped) return;
  own = await startService(inject("samples"));
  await addEditions(url());
});
afterAll(() => own?.stop());

inBrowser("a regulation on one page", () => {
  test("the whole text: an outline, articles with addresses of their own, marks and history on demand", async () => {
    const page = await open(at(`#/regulations/${NAME}`), {}, url());
    const text = page.getByRole("region", { name: "Text" });
    await text.getByRole("article").first().waitFor();
    expect(await text.getByRole("heading").allInnerTexts()).toEqual([
      "제1장 총칙",
      "제1조 (목적)",
      "제2장 운행",
      "제2조 (배차)",
      "제3조 (제한)",
      "제4조 (준용)",
      "부칙",
    ]);
    const second = page.getByRole("article", { name: `${NAME} 제2조` });
    expect(await second.innerText()).not.toContain("개정 2024");
    await page.getByLabel("Show 1 amendment mark in the text").click();
    await second.getByText("<개정 2024. 3. 1.>").waitFor();
    await page.getByText("History of the regulation").click();
    await page.getByText("제정 2020. 3. 1.").waitFor();
    const outline = page.getByRole("navigation", { name: "Outline" });
    await outline.getByText("제2조–제4조").click();
    await outline.getByRole("link", { name: "제4조 (준용)" }).click();
    await expectAt(page, "제4조 (준용)");
    expect(decodeURIComponent(page.url())).toContain(`#/regulations/${NAME}?at=제4조`);
    await page.locator("main").evaluate((main) => main.scrollTo(0, 0));
    await outline.getByRole("link", { name: "제4조 (준용)" }).click(); // the same address again
    await expectAt(page, "제4조 (준용)");
    await outline.getByRole("link", { name: "제2장 운행" }).click();
    await expectAt(page, "제2장 운행");
    await page.goto(`${url()}/${at(`#/regulations?at=${NAME} 제3조제1항`)}`); // as in a link to a citation
    await page.reload();
    await expectAt(page, "제3조 (제한)");
    await close(page);
  });

  test("an edition is chosen among those that exist, and its text is shown", async () => {
    const page = await open(at(`#/regulations/${NAME}?at=제2조`), {}, url());
    await page.getByText("마흔 번까지").waitFor();
    const editions = page.getByRole("combobox", { name: "Edition" });
    expect(await editions.locator("option").allInnerTexts()).toEqual([
      "Valid today",
      "Valid from Mar 1, 2024",
      "Valid from Mar 1, 2020",
    ]);
    await editions.selectOption("2020-03-01");
    await page.getByText("서른 번까지").waitFor();
    expect(page.url()).toContain("asOf=2020-03-01");
    await page.goto(`${url()}/${at(`#/regulations/${NAME}?part=editions`)}`);
    await page.locator("ins", { hasText: "마흔" }).waitFor();
    await page.getByLabel("Before").selectOption("2024-03-01");
    await page.getByText("No provision differs between these days").waitFor();
    await close(page);
  });

  test("a question is answered from this regulation alone", async () => {
    const page = await open(at(`#/regulations/${NAME}`), {}, url());
    await page.getByRole("link", { name: "Ask this regulation" }).click();
    await page.getByText(`Only ${NAME}`).waitFor();
    const asked = page.waitForRequest((request) => request.url().endsWith("/chat/stream"));
    await page.getByRole("textbox", { name: "Question" }).fill("배차는 하루에 몇 번까지 하나요?");
    await page.keyboard.press("Enter");
    expect((await asked).postDataJSON()).toMatchObject({ context: { filters: { metadata: { regulation: NAME } } } });
    await page.locator('article[aria-busy="false"]').getByText("마흔").first().waitFor();
    await page.getByRole("button", { name: "Search beyond this regulation" }).click();
    await page.getByText(`Only ${NAME}`).waitFor({ state: "detached" });
    await close(page);
  });

  test("tables are tables, and a regulation of 200 articles and a book of 371 regulations are quick", async () => {
    const articles = Array.from({ length: 200 }, (_, n) => `### 제${n + 1}조(항목)\n\n${SENTENCE.repeat(12)}\n`);
    const long = `# 긴이름규정\n\n${articles.join("\n")}\n## 부칙\n\n이 규정은 2020. 3. 1.부터 시행한다.\n`;
    await addFiles(url(), [["long.md", long]]);
    const small = (n: number) =>
      `# 제${n}위원회운영규정\n\n### 제1조(목적)\n\n위원회 ${n}의 운영을 정한다.\n\n### 제2조(구성)\n\n위원은 다섯이다.\n`;
    for (let from = 0; from < 360; from += 60)
      await addFiles(
        url(),
        Array.from({ length: 60 }, (_, n) => [`small-${from + n}.md`, small(from + n)]),
      );
    const page = await open(at("#/regulations/장학금지급규정?at=별표1"), { width: 390 }, url());
    await page.getByRole("article", { name: "장학금지급규정 별표 1" }).getByRole("table").waitFor();
    await picture(page, "regulations-table-en-390");
    const began = Date.now();
    await page.goto(`${url()}/${at("#/regulations/긴이름규정?at=제150조")}`);
    await expectAt(page, "제150조 (항목)");
    const read = Date.now() - began;
    await picture(page, "regulations-long-en-390");
    await expectNoSideways(page);
    await expectAccessible(page);
    await page.goto(`${url()}/#/regulations`);
    const listed = Date.now();
    const rows = page.getByRole("list", { name: "Regulations" }).locator("> li");
    await rows.nth(365).waitFor();
    console.log(`200 articles: ${read} ms; ${await rows.count()} regulations: ${Date.now() - listed} ms`);
    expect(Math.max(read, Date.now() - listed)).toBeLessThan(10_000);
    expect(await rows.first().innerText()).not.toMatch(/Name|Contents|Code/);
    await expectNoSideways(page);
    await picture(page, "regulations-book-en-390");
    await rows.filter({ hasText: NAME }).locator("summary").first().click();
    await page.getByRole("link", { name: "제2장 운행" }).waitFor();
    await close(page);
  }, 300_000);

  test("an article that does not exist is said to, above the text; a regulation that does not, too", async () => {
    const page = await open(at(`#/regulations?at=${NAME} 제99조`), {}, url());
    await page.getByRole("alert").filter({ hasText: "제99조" }).waitFor();
    await page.getByRole("article", { name: `${NAME} 제1조` }).waitFor();
    await expectAccessible(page);
    await page.goto(`${url()}/${at("#/regulations/없는규정")}`);
    await page.getByRole("button", { name: "Go back" }).waitFor();
    await expectAccessible(page);
    await close(page, REFUSED);
  });

  test("by keyboard alone at 320 px: from the outline to an article and to one that cites it", async () => {
    const page = await open(at(`#/regulations/${NAME}`), { width: 320 }, url());
    const outline = page.getByRole("navigation", { name: "Outline" });
    await outline.locator("summary").first().focus();
    await page.keyboard.press("Enter");
    await outline.locator("summary", { hasText: "제2조–제4조" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "제2조 (배차)" }).first().focus();
    await page.keyboard.press("Enter");
    await expectAt(page, "제2조 (배차)");
    await page.keyboard.press("Tab"); // its own address
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: `${NAME} 제3조`, exact: true }).focus();
    await page.keyboard.press("Enter");
    await expectAt(page, "제3조 (제한)");
    await expectNoSideways(page);
    await close(page);
  });
});
