/** The regulations over a service of its own, with two editions of one regulation beside the samples. */
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import {
  close,
  expectAccessible,
  expectNoSideways,
  inBrowser,
  nameOf,
  open,
  picture,
  skipped,
  type Look,
} from "./browser";
import { startService, type Service } from "./service";
import { expectFailure, FAILURES, REFUSED } from "./states";

const TWO_LOOKS: Required<Look>[] = [
  { language: "en", theme: "light", width: 1280 },
  { language: "ko", theme: "dark", width: 320 },
];
const NAME = "차량관리규정";
const at = (fragment: string) => encodeURI(fragment);
let own: Service | undefined;
const url = () => own?.url ?? "";

/** An edition that became valid on `day`. */
const edition = (day: string, sentence: string) => `# ${NAME}

제정 2020. 3. 1.

개정 ${day}

## 제1장 총칙

### 제1조(목적)

이 규정은 차량의 관리를 정한다.

## 제2장 운행

### 제2조(배차)

${sentence} <개정 ${day}>

### 제3조(제한)

제2조에 따라 배차를 제한할 수 있다.

## 부칙

이 규정은 ${day}부터 시행한다.
`;

beforeAll(async () => {
  if (skipped) return;
  own = await startService(inject("samples"));
  const editions = [
    ["old.md", edition("2020. 3. 1.", "배차는 하루에 서른 번까지 한다.")],
    ["new.md", edition("2024. 3. 1.", "배차는 하루에 마흔 번까지 한다.")],
  ] as const;
  for (const [name, text] of editions) {
    const form = new FormData();
    form.append("files", new Blob([text]), name);
    form.append("category", "Rules");
    const response = await fetch(`${url()}/documents`, { method: "POST", body: form });
    if (!response.ok) throw new Error(`${name}: ${response.status} ${await response.text()}`);
  }
});
afterAll(() => own?.stop());

inBrowser("regulations", () => {
  test.each(TWO_LOOKS.map((look) => [nameOf(look), look] as const))("%s", async (name, look) => {
    const page = await open("#/regulations", look, url());
    const check = async (part: string) => {
      await expectAccessible(page);
      await expectNoSideways(page);
      await picture(page, `regulations-${part}-${name}`);
    };
    await page.getByRole("link", { name: NAME, exact: true }).waitFor();
    await check("list");
    await page.getByRole("link", { name: NAME, exact: true }).click();
    await page.getByRole("heading", { level: 2, name: "제2장 운행" }).waitFor();
    await check("outline");
    await page.getByRole("link", { name: "제2조 (배차)" }).click();
    await page.getByText("배차는 하루에 마흔 번까지 한다.").waitFor();
    await page.getByRole("link", { name: `${NAME} 제3조`, exact: true }).waitFor();
    await check("article");
    await page.goto(`${url()}/${at(`#/regulations/${NAME}?part=editions`)}`);
    await page.locator("ins", { hasText: "마흔" }).waitFor();
    await page.locator("del", { hasText: "서른" }).waitFor();
    await check("editions");
    await close(page);
  });

  test.each(FAILURES)("when the service answers %s", async (kind) => {
    await expectFailure("regulations", "#/regulations", "/regulations", kind);
  });

  test("the day is in the address: the text of that day, and a list without a regulation", async () => {
    const page = await open(at(`#/regulations?at=${NAME} 제2조&asOf=2021-01-01`), {}, url());
    await page.getByText("배차는 하루에 서른 번까지 한다.").waitFor();
    await page.goto(`${url()}/#/regulations?asOf=1990-01-01`);
    await page.getByText("There are no regulations").waitFor();
    await expectAccessible(page);
    await page.getByRole("link", { name: "Show today's regulations" }).click();
    await page.getByRole("link", { name: NAME, exact: true }).waitFor();
    expect(page.url()).not.toContain("asOf");
    await close(page);
  });

  test("an article that does not exist offers the way back", async () => {
    const page = await open(at(`#/regulations?at=${NAME} 제99조`), {}, url());
    await page.getByRole("button", { name: "Go back" }).waitFor();
    await expectAccessible(page);
    await close(page, REFUSED);
  });

  test("by keyboard alone at 320 px: from the outline to an article and to one that cites it", async () => {
    const page = await open(at(`#/regulations/${NAME}`), { width: 320 }, url());
    await page.getByRole("link", { name: "제2조 (배차)" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: `${NAME} 제3조`, exact: true }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: `${NAME} 제3조` }).waitFor();
    await page.getByText("배차를 제한할 수 있다").waitFor();
    await expectNoSideways(page);
    await close(page);
  });
});
