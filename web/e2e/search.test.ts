import { expect, test } from "vitest";
import { close, expectAccessible, expectNoSideways, inBrowser, open, picture, service } from "./browser";
import { expectFailure, FAILURES } from "./states";

const at = (query: string, more = "") => `#/search?q=${encodeURIComponent(query)}${more}`;
const ENGLISH = "parental leave days";
const KOREAN = "학교를 잠깐 쉬고 싶어요";

inBrowser("search", () => {
  test.each(FAILURES)("when the service answers %s", async (kind) => {
    await expectFailure("search", at("leave"), "/search", kind);
  });

  test("by keyboard alone: search, narrow, ask why a document is missing", async () => {
    const page = await open("#/search", { width: 320 });
    await page.getByRole("search").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("parental leave");
    await page.keyboard.press("Enter");
    await page.locator("article table").first().waitFor();
    await expectNoSideways(page);
    await page.locator("h1").click();
    await page.keyboard.press("f");
    await page.getByRole("dialog").waitFor();
    await expectAccessible(page);
    await picture(page, "search-filters-en-light-320");
    await page.getByRole("tree").waitFor();
    await page.getByLabel("HTML").focus();
    await page.keyboard.press("Space");
    await page.keyboard.press("Escape");
    expect(page.url()).toContain("type=text%2Fhtml");
    const documents = (await (await page.request.get(`${service}/documents`)).json()) as {
      documents: { document_id: string; content_type: string }[];
    };
    const other = documents.documents.find((document) => document.content_type === "application/hwp+zip");
    await page.getByLabel("Document", { exact: true }).focus();
    await page.keyboard.type(`${service}/#/documents/${other?.document_id}`);
    await page.keyboard.press("Enter");
    await page
      .getByText(/filters/i)
      .last()
      .waitFor();
    await page.getByRole("button", { name: "Do not explain" }).first().waitFor();
    await expectAccessible(page);
    await picture(page, "search-why-en-light-320");
    await close(page);
  });

  test("an everyday question lists the official words that the lexicon added, and which passages contain them", async () => {
    const page = await open(at(KOREAN));
    await page.locator("summary", { hasText: "Added by the lexicon: 휴학" }).click();
    const row = page.locator("details li").filter({ has: page.locator("strong", { hasText: /쉬고/ }) });
    await row.first().waitFor();
    expect(await row.first().innerText()).toMatch(/휴학[\s\S]*0\.\d\d[\s\S]*Entry “/);
    await page.locator("article").first().getByText("By the lexicon:").waitFor();
    const added = await page.locator("details li span[lang=ko]").allInnerTexts();
    const inPassage = page.locator("article").first().locator("p", { hasText: "By the lexicon:" }).locator("span");
    for (const word of (await inPassage.allInnerTexts()).slice(1)) expect(added).toContain(word);
    await close(page);
  });

  test("the copied command makes the same search", async () => {
    const page = await open(at(ENGLISH, "&k=3"));
    await page.locator("article table").first().waitFor();
    await page.getByRole("button", { name: "Copy as curl" }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    const command = await page.evaluate(() => navigator.clipboard.readText());
    const body = /-d '(.*)'$/s.exec(command)?.[1] ?? "";
    const response = await page.request.post(`${service}/search`, {
      data: body,
      headers: { "Content-Type": "application/json" },
    });
    const found = (await response.json()) as { results: { title: string; bm25_score: number }[] };
    expect(await page.locator("article h3").allInnerTexts()).toEqual(found.results.map((hit) => hit.title));
    const first = await page.locator("article table").first().innerText();
    expect(first).toContain(found.results[0]?.bm25_score.toFixed(3));
    await close(page);
  });
});
