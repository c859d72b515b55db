/** Before the first question: what is in here, example questions, and the name, greeting and colour of the settings. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { askLinked, library, openAsked, waitForAnswer } from "./asking";
import {
  close,
  COLOURS,
  expectAccessible,
  expectNoSideways,
  inBrowser,
  LOOKS,
  nameOf,
  open,
  picture,
  service as shared,
} from "./browser";
import { startService, type Service } from "./service";

inBrowser("before the first question", () => {
  test("an example is asked by a click; a category restricts the questions to it", async () => {
    const page = await open("");
    const categories = page.getByRole("region", { name: "What is in here" });
    await categories.getByRole("link", { name: "University" }).click();
    expect(new URL(page.url()).hash).toContain("scope=Samples%2FUniversity");
    await categories.getByRole("link", { name: "University" }).and(page.locator("[aria-current=true]")).waitFor();
    await page.getByRole("button", { name: "University" }).waitFor();
    await page.getByRole("button", { name: "Search all documents" }).click();
    const examples = page.getByRole("region", { name: "For example" }).getByRole("link");
    // Those that are not checked yet come with a later load.
    for (let load = 0; load < 10 && (await examples.count()) < 6; load += 1) {
      await page.reload();
      await examples.first().waitFor();
    }
    expect(await examples.count()).toBe(6);
    const question = await examples.first().innerText();
    await examples.first().focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: question }).waitFor();
    await waitForAnswer(page);
    await page.goBack();
    await page.getByRole("region", { name: "Newest documents" }).getByRole("link").first().click();
    await page.waitForURL(/#\/documents\/[0-9a-f-]{36}/);
    await close(page);
  });

  test("a link waits until its reader asks it under the own rights, in a conversation of the reader's own", async () => {
    const page = await openAsked(library.en);
    await waitForAnswer(page);
    await page.getByRole("button", { name: "Copy link" }).click();
    const link = await page.evaluate(() => navigator.clipboard.readText());
    expect(new URL(link).hash).not.toContain("c=");
    const other = await open("");
    const sent: string[] = [];
    other.on("request", (request) => request.method() === "POST" && sent.push(request.url()));
    const talks = other.getByRole("complementary", { name: "Conversations" }).getByRole("listitem");
    await talks.first().waitFor();
    const before = await talks.count();
    const scoped = `${new URL(link).hash}&scope=Samples%2FHandbook`;
    // A link, one with a conversation that is not the reader's, and one that another page opens in this tab.
    for (const hash of [scoped, `${scoped}&c=page-of-another`]) {
      await other.goto("about:blank");
      await other.goto(`${shared}/${hash}`);
      await other.getByText("This question comes from a link.").waitFor();
      expect(await other.getByRole("textbox", { name: "Question" }).inputValue()).toBe(library.en);
      await other.getByRole("button", { name: "Handbook" }).waitFor();
    }
    await other.evaluate((to) => (location.hash = to), scoped);
    await other.reload();
    await talks.first().waitFor();
    expect([sent, await talks.count()]).toEqual([[], before]);
    await askLinked(other);
    await waitForAnswer(other);
    expect(await other.locator("article").innerText()).toContain("26 days");
    expect(other.url()).not.toBe(page.url());
    await other.goBack();
    await other.getByText("This question comes from a link.").waitFor();
    await other.goForward();
    await waitForAnswer(other);
    expect(sent).toHaveLength(1);
    await close(other, /404/);
    await close(page);
  });
});

inBrowser("the settings of the page", () => {
  let service: Service;
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "dtrag-examples-"));
    const examples = join(folder, "examples.txt");
    await writeFile(examples, "How many days of leave are there?\n휴학은 몇 학기까지 할 수 있나요?\n");
    service = await startService(inject("samples"), {
      DTRAG_PUBLIC: "Samples/University",
      DTRAG_PAGE_NAME: "한빛대학교 규정",
      DTRAG_PAGE_GREETING: "학사, 장학, 도서관에 관해 물어보세요.",
      DTRAG_PAGE_COLOUR: "#7a1f3d",
      DTRAG_PAGE_EXAMPLES: examples,
    });
    await service.dtrag("keys", "create", "--name", "kim", "--role", "reader");
  });
  afterAll(async () => {
    await service.stop();
    await rm(folder, { recursive: true });
  });

  test.each(LOOKS)("are shown to a visitor without a key, who sees the public branches only: %o", async (look) => {
    const page = await open("", look, service.url);
    await page.getByRole("heading", { name: "한빛대학교 규정", level: 1 }).waitFor();
    await page.getByText("학사, 장학, 도서관에 관해 물어보세요.").waitFor();
    const links = page.locator("main section li a");
    const first = look.language === "en" ? "How many days of leave are there?" : "휴학은 몇 학기까지 할 수 있나요?";
    expect(await links.first().innerText()).toBe(first);
    expect(await page.locator("main").innerText()).not.toMatch(/Handbook|Leave and Holidays/);
    const accent = await links.first().evaluate((link) => getComputedStyle(link).color);
    expect(accent).toMatch(/^oklch/);
    await expectAccessible(page);
    await expectNoSideways(page);
    await picture(page, `start-${nameOf(look)}`);
    await close(page);
  });

  test.each([390, 1280])("name the page everywhere, before signing in, too: %i pixels", async (width) => {
    const page = await open("", { width, language: "ko" }, service.url);
    expect(await page.title()).toBe("질문 · 한빛대학교 규정");
    if (width < 1000) await page.getByRole("button", { name: "메뉴" }).click();
    await page.locator("p, h2", { hasText: "한빛대학교 규정" }).filter({ visible: true }).first().waitFor();
    await picture(page, `named-${width}`);
    await page.goto(`${service.url}/?sign-in=unavailable`);
    await page.getByLabel("키", { exact: true }).waitFor();
    expect(await page.locator("form p").first().innerText()).toBe("한빛대학교 규정");
    expect(await page.locator("body").innerText()).not.toMatch(/^dtrag$/m);
    await picture(page, `named-sign-in-${width}`);
    await close(page);
  });

  test("every colour contrasts enough with each ground, in both themes", async () => {
    const page = await open("", {}, service.url);
    const hex = ["00", "80", "ff"];
    const colours = hex.flatMap((r) => hex.flatMap((g) => hex.map((b) => `#${r}${g}${b}`)));
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      const least = await page.evaluate(leastContrast, [...colours, "#7a1f3d", "#ffd400", "#1d4f91"]);
      expect(least.ratio, `${colorScheme}: ${least.of}`).toBeGreaterThanOrEqual(4.5);
    }
    await expectAccessible(page, COLOURS);
    await close(page);
  });
});

/** The lowest contrast of text in the accent colour, and of text on it, over these colours of the page. */
function leastContrast(colours: string[]): { ratio: number; of: string } {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const probe = document.body.appendChild(document.createElement("p"));
  const light = (name: string) => {
    probe.style.color = `var(--${name})`;
    if (!context) throw new Error("no canvas");
    context.fillStyle = getComputedStyle(probe).color;
    context.fillRect(0, 0, 1, 1);
    const [r = 0, g = 0, b = 0] = [...context.getImageData(0, 0, 1, 1).data].map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one: string, other: string) => {
    const [darker = 0, lighter = 0] = [light(one), light(other)].sort((a, b) => a - b);
    return (lighter + 0.05) / (darker + 0.05);
  };
  const pairs = [
    ...["ground", "ground-2", "ground-3", "accent-ground"].map((ground) => ["accent", ground] as const),
    ["on-accent", "accent-solid"] as const,
    ["ink", "accent-ground"] as const,
    ["ink-2", "accent-ground"] as const,
  ];
  let least = { ratio: Infinity, of: "" };
  for (const colour of colours) {
    document.documentElement.style.setProperty("--page-colour", colour);
    for (const [one, other] of pairs) {
      const ratio = contrast(one, other);
      if (ratio < least.ratio) least = { ratio, of: `${colour}, ${one} on ${other}` };
    }
  }
  return least;
}
