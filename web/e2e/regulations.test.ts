/** The regulations over a service of its own, with two editions of one regulation beside the samples. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import {
  close,
  expectAccessible,
  expectNoSideways,
  inBrowser,
  LANGUAGES,
  nameOf,
  open,
  picture,
  skipped,
  type Look,
} from "./browser";
import { VEHICLES as NAME } from "./editions";
import { addEditions, expectAt } from "./reading";
import { startService, type Service } from "./service";
import { REFUSED } from "./states";

const TWO_LOOKS: Required<Look>[] = [
  { language: "en", theme: "light", width: 1280 },
  { language: "ko", theme: "dark", width: 320 },
];
const at = (fragment: string) => encodeURI(fragment);
let own: Service | undefined;
const url = () => own?.url ?? "";

/** 🙂 is one code point and two UTF-16 units: the marks after it must be in the right place all the same. */
const PASTED = `🙂 ${NAME} 제2조(배차)는 “배차는 하루에 마흔 번까지 한다.”라고 정한다. 그래서 늦으면 곤란하다.
${NAME} 제2조에 따르면 “배차는 하루에 쉰 번까지 한다.” 같은 규정 제77조도 있다.`;

const TEXTS = {
  en: {
    check: "Verify",
    text: "Text to verify",
    done: "2 findings to look at",
    stale: "1 citation is older than what it cites.",
    missing: "1 citation means a provision that does not exist, or that you may not see.",
  },
  ko: {
    check: "검증",
    text: "검증할 글",
    done: "살펴볼 것이 2건 있습니다",
    stale: "인용한 뒤에 조문이 바뀐 인용이 1건 있습니다.",
    missing: "없거나 볼 수 없는 조문의 인용이 1건 있습니다.",
  },
};

async function verify(page: Page, language: "en" | "ko", text: string): Promise<void> {
  await page.getByLabel(TEXTS[language].text).fill(text);
  await page.getByRole("button", { name: TEXTS[language].check, exact: true }).click();
}

beforeAll(async () => {
  if (skipped) return;
  own = await startService(inject("samples"));
  await addEditions(url());
});
afterAll(() => own?.stop());

/** The parts of the view, each with what is there when it is complete. */
const PARTS: [string, string, (page: Page, language: "en" | "ko") => Promise<void>][] = [
  ["list", "#/regulations", (page) => page.getByRole("link", { name: NAME, exact: true }).waitFor()],
  ["text", `#/regulations/${NAME}`, (page) => page.getByRole("heading", { level: 2, name: "제2장 운행" }).waitFor()],
  [
    "article",
    `#/regulations/${NAME}?at=제2조&marks=1`,
    async (page) => {
      await page.getByText("마흔 번까지").waitFor();
      const article = page.getByRole("article", { name: `${NAME} 제2조` });
      await article.locator("summary").click();
      await article.getByRole("link", { name: `${NAME} 제3조` }).waitFor();
      await article.locator("dl").waitFor();
    },
  ],
  ["editions", `#/regulations/${NAME}?part=editions`, (page) => page.locator("ins", { hasText: "마흔" }).waitFor()],
  ["stale", `#/regulations/${NAME}?part=stale`, (page, language) => page.getByText(TEXTS[language].stale).waitFor()],
  [
    "missing",
    `#/regulations/${NAME}?part=stale&broken=missing`,
    (page, language) => page.getByText(TEXTS[language].missing).waitFor(),
  ],
  [
    "verify",
    "#/regulations?show=verify",
    async (page, language) => {
      await verify(page, language, PASTED);
      await page.getByRole("heading", { name: TEXTS[language].done }).waitFor();
    },
  ],
];

inBrowser("regulations", () => {
  test.each(TWO_LOOKS.map((look) => [nameOf(look), look] as const))("every part in %s", async (name, look) => {
    const page = await open("#/regulations", look, url());
    for (const [part, address, complete] of PARTS) {
      await page.goto(`${url()}/${at(address)}`);
      await complete(page, look.language);
      await expectAccessible(page);
      await expectNoSideways(page);
      // The text scrolls below the header, and nothing hidden in it makes the document itself scroll.
      expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBe(800);
      await picture(page, `regulations-${part}-${name}`);
    }
    await close(page);
  });

  test.each(LANGUAGES)("accessible names in %s", async (language) => {
    const page = await open("#/regulations", { language }, url());
    for (const [part, address, complete] of PARTS) {
      await page.goto(`${url()}/${at(address)}`);
      await complete(page, language);
      await expect(await namesIn(page)).toMatchFileSnapshot(`names/regulations-${part}-${language}.yaml`);
    }
    await close(page);
  });

  test("a pasted text: every citation and quotation has its verdict, and a link to the provision", async () => {
    const page = await open("#/regulations?show=verify", {}, url());
    await verify(page, "en", PASTED);
    const sentences = page.getByRole("list", { name: "Sentences that cite" }).locator("> li");
    await sentences.first().waitFor();
    const rows = await sentences.evaluateAll((items) =>
      items.map((item) => [
        item.querySelector("p")?.textContent.trim(),
        [...item.querySelectorAll("mark")].map((mark) => mark.textContent),
        [...item.querySelectorAll("ul > li > div > span")].map((badge) => badge.textContent),
      ]),
    );
    expect(rows).toEqual([
      [
        `🙂 ${NAME} 제2조(배차)는 “배차는 하루에 마흔 번까지 한다.”라고 정한다.`,
        [`${NAME} 제2조(배차)`, "배차는 하루에 마흔 번까지 한다."],
        ["Exists", "Verbatim"],
      ],
      [
        `${NAME} 제2조에 따르면 “배차는 하루에 쉰 번까지 한다.”`,
        [`${NAME} 제2조`, "배차는 하루에 쉰 번까지 한다."],
        ["Exists", "Not verbatim"],
      ],
      ["같은 규정 제77조도 있다.", ["같은 규정 제77조"], ["Missing"]],
    ]);
    await page.getByText("There are 제1조–제4조").waitFor();
    expect(decodeURIComponent(page.url())).not.toContain("배차");

    await page.getByText("With findings (2)").click();
    expect(await sentences.count()).toBe(2);
    expect(page.url()).toContain("findings=wrong");
    await sentences
      .first()
      .getByRole("link", { name: `${NAME} 제2조` })
      .first()
      .click();
    await expectAt(page, "제2조 (배차)");
    await page.goBack(); // the text is still there, and not in the address
    await page.getByRole("heading", { name: "2 findings to look at" }).waitFor();
    expect(await page.getByLabel("Text to verify").inputValue()).toBe(PASTED);
    await page.reload(); // and ends with the page
    await page.getByLabel("Text to verify").waitFor();
    expect(await page.getByLabel("Text to verify").inputValue()).toBe("");
    await close(page);
  });

  test("verifying: the regulation of bare references, the day, nothing cited, an unknown regulation", async () => {
    const page = await open("#/regulations?show=verify&asOf=2021-01-01", {}, url());
    await page.getByLabel("Regulation of bare references").fill(NAME);
    await verify(page, "en", "제2조는 “배차는 하루에 서른 번까지 한다.”라고 한다.");
    await page.getByRole("heading", { name: "Every citation exists, and every quotation is verbatim." }).waitFor();
    expect(decodeURIComponent(page.url())).toContain(`regulation=${NAME}`);
    await verify(page, "en", "아무것도 인용하지 않는다.");
    await page.getByText("The text cites no regulation").first().waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Edit the text" }).click();
    expect(await page.getByLabel("Text to verify").evaluate((box) => box === document.activeElement)).toBe(true);
    await page.getByLabel("Regulation of bare references").fill("없는규정");
    await verify(page, "en", "제2조에 따른다.");
    await page.getByRole("alert").filter({ hasText: "없는규정" }).waitFor();
    await expectAccessible(page);
    await close(page, REFUSED);
  });

  test("citations to check: a link to the article, and the missing ones", async () => {
    const page = await open("#/regulations?show=stale", {}, url());
    const table = page.getByRole("table", { name: "Changed provisions" });
    await table.getByRole("row", { name: new RegExp(`${NAME} 제3조.*${NAME} 제2조.*Amended`) }).waitFor();
    await table.getByRole("link", { name: `${NAME} 제2조` }).click();
    await page.getByText("마흔 번까지").waitFor();
    await page.goBack();
    await page.getByText("Missing provisions").click();
    await page.getByRole("table", { name: "Missing provisions" }).getByText("제9조").waitFor();
    expect(page.url()).toContain("broken=missing");
    await page.goto(`${url()}/${at(`#/regulations/${NAME}?part=stale&asOf=2021-01-01`)}`);
    await page.getByText("No citation is older than what it cites").waitFor();
    await expectAccessible(page);
    await page.getByRole("link", { name: "Look for citations of missing provisions" }).click();
    await page.getByRole("table", { name: "Missing provisions" }).waitFor();
    await page.goto(`${url()}/${at("#/regulations/학칙?part=stale&broken=missing")}`);
    await page.getByText("Every cited provision exists").waitFor();
    await expectAccessible(page);
    await close(page);
  });

  test("a regulation is found by letters of its name; its articles lead to the ones beside them", async () => {
    const page = await open("#/regulations", {}, url());
    await page.getByText("Code", { exact: true }).first().click();
    await page.getByLabel("Find a regulation").fill("차량 관리");
    await page.getByRole("status").filter({ hasText: "1 regulation" }).waitFor();
    expect(decodeURIComponent(page.url())).toMatch(/find=차량\+관리.*order=code/);
    await page.getByLabel("Find a regulation").fill("없는 이름");
    await page.getByText("No regulation has “없는 이름” in its name").waitFor();
    await expectAccessible(page);
    await page.getByRole("link", { name: "Show all regulations" }).click();
    await page.getByRole("link", { name: NAME, exact: true }).click();
    await page.getByRole("heading", { level: 1, name: NAME }).waitFor();
    await close(page);
  });

  test("citations inside an article are marked: a link where there is a target", async () => {
    const page = await open(at(`#/regulations/${NAME}?at=제4조`), {}, url());
    const text = page.locator("article p[lang=ko]").filter({ hasText: "준용한다" });
    await text.waitFor();
    expect(await text.locator("[data-kind]").allTextContents()).toEqual(["제9조", "「도로교통법」 제2조"]);
    expect(await text.locator("a").count()).toBe(0);
    await page.locator("article p[lang=ko]").getByRole("link", { name: "제2조", exact: true }).click();
    await expectAt(page, "제2조 (배차)");
    await close(page);
  });

  test("the day is in the address: the text of that day, and parts without anything to show", async () => {
    const page = await open(at(`#/regulations?at=${NAME} 제2조&asOf=2021-01-01`), {}, url());
    await page.getByText("배차는 하루에 서른 번까지 한다.").waitFor();
    await page.goto(`${url()}/#/regulations?asOf=1990-01-01`);
    await page.getByText("There are no regulations").waitFor();
    await expectAccessible(page);
    await page.getByRole("link", { name: "Show today's regulations" }).click();
    await page.getByRole("link", { name: NAME, exact: true }).waitFor();
    expect(page.url()).not.toContain("asOf");
    await page.goto(`${url()}/${at(`#/regulations/${NAME}?part=editions&before=2024-03-01&after=2024-03-01`)}`);
    await page.getByText("No provision differs between these days").waitFor();
    await expectAccessible(page);
    await page.getByRole("link", { name: "Go to the text" }).click();
    await page.getByRole("heading", { level: 2, name: "제2장 운행" }).waitFor();
    await close(page);
  });
});

/** What a screen reader finds, without addresses. */
async function namesIn(page: Page): Promise<string> {
  const snapshot = await page.locator("main").ariaSnapshot();
  return snapshot
    .split("\n")
    .filter((line) => !line.includes("/url:"))
    .join("\n");
}
