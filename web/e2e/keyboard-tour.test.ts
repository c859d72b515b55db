/** The whole tour by keyboard alone: only keys are pressed, and the focus is never lost. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { library, waitForAnswer } from "./asking";
import { close, inBrowser, open, skipped } from "./browser";
import { requests } from "./filled";
import { startService, type Service } from "./service";
import { enterOn, expectFocus, focusOf, tabTo } from "./tabbing";

/** Before a key was given, the service says 401 once. */
const SIGN_IN = /401/;
const VIEWS = [
  "Search",
  "Regulations",
  "Documents",
  "Categories",
  "Agents",
  "Review",
  "Cases",
  "Evaluation",
  "Traces",
  "Keys",
  "Audit",
  "Settings",
];
let own: Service | undefined;
let secret: string;

beforeAll(async () => {
  if (skipped) return;
  own = await startService(inject("samples"), { CBR_ENABLED: "true" });
  const created = await requests(own.url)<{ secret: string }>("/keys", { name: "kim", role: "admin" });
  secret = created.secret;
});
afterAll(() => own?.stop());

/** A page that was signed in with the key, by keyboard; the focus is on its content. */
async function signedIn(): Promise<Page> {
  const page = await open("", {}, own?.url);
  await expectFocus(page, page.getByLabel("Key", { exact: true }));
  await page.keyboard.insertText(secret);
  await page.keyboard.press("Enter");
  await expectFocus(page, page.getByRole("main"));
  return page;
}

/** Goes to a view through the navigation, from anywhere; its content then has the focus. */
async function goTo(page: Page, view: string): Promise<void> {
  await enterOn(page, "link", view, true);
  await expect.poll(() => page.title()).toBe(`${view} · dtrag`);
  await expectFocus(page, page.getByRole("main"));
  await page.locator("main h1").first().waitFor();
}

/** What had the focus is gone: something else must have it, or Tab begins again at the top of the page. */
const expectSomeFocus = (page: Page) => expect.poll(() => focusOf(page)).not.toMatch(/^body/);

inBrowser("by keyboard alone", () => {
  test("skip link, a question, its source, a vote, a stored conversation", async () => {
    const page = await signedIn();
    await page.reload();
    await page.getByRole("heading", { level: 1 }).waitFor();
    await enterOn(page, "link", "Skip to the content");
    await expectFocus(page, page.getByRole("main"));
    await tabTo(page, "textbox", "Question");
    await page.keyboard.type(library.en);
    await page.keyboard.press("Enter");
    await waitForAnswer(page);
    // The box keeps the focus; the answer is before it.
    await expectFocus(page, page.getByRole("textbox", { name: "Question" }));
    const mark = await tabTo(page, "link", /^Source 1:/, true);
    const id = await mark.getAttribute("id");
    await page.keyboard.press("Enter");
    await page.locator('mark[data-kinds~="quote"]').first().waitFor();
    await expectFocus(page, page.getByRole("heading", { name: /^Source 1:/ }));
    await enterOn(page, "button", "Close");
    await expectFocus(page, page.locator(`[id="${id}"]`));
    await page.keyboard.press("Enter");
    await expectFocus(page, page.getByRole("heading", { name: /^Source 1:/ }));
    await page.keyboard.press("Escape");
    await expectFocus(page, page.locator(`[id="${id}"]`));
    await enterOn(page, "button", "The answer is right");
    await enterOn(page, "button", "Say why");
    await tabTo(page, "textbox", /What was good/);
    await page.keyboard.type("Exactly the number.");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await expectFocus(page, page.getByRole("button", { name: "Say why" }));
    await page.setViewportSize({ width: 800, height: 800 }); // too narrow for them beside the answer
    await enterOn(page, "button", "Conversations", true);
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await expectFocus(page, page.getByRole("button", { name: "Conversations" }));
    await page.keyboard.press("Enter");
    await enterOn(page, "link", new RegExp(library.en.slice(0, 20)));
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("heading", { level: 2, name: library.en }).waitFor();
    await expectSomeFocus(page);
    await close(page, SIGN_IN);
  });

  test("every view through the navigation, a document, and the tree of categories", async () => {
    const page = await signedIn();
    for (const view of VIEWS) await goTo(page, view);
    await goTo(page, "Documents");
    await enterOn(page, "link", /Leave and Holidays/);
    await page.getByRole("heading", { level: 1, name: "Leave and Holidays" }).waitFor();
    await expectSomeFocus(page);
    await goTo(page, "Categories");
    await tabTo(page, "treeitem", /^Samples/);
    const item = (name: string) => page.getByRole("treeitem", { name: new RegExp(`^${name}`) });
    await page.keyboard.press("ArrowRight");
    await expectFocus(page, item("Handbook"));
    await page.keyboard.press("End");
    await expectFocus(page, page.getByRole("treeitem").last());
    await page.keyboard.press("Home");
    await expectFocus(page, item("Samples"));
    await page.keyboard.press("ArrowLeft");
    await item("Handbook").waitFor({ state: "detached" });
    await page.keyboard.press("ArrowRight");
    await item("Handbook").waitFor();
    await page.keyboard.press("ArrowDown");
    await expectFocus(page, item("Handbook"));
    await page.keyboard.press("Enter");
    await page.locator('[role=treeitem][aria-selected="true"]', { hasText: "Handbook" }).waitFor();
    await close(page, SIGN_IN);
  });

  test("a search with a filter, and a dialog that Escape closes", async () => {
    const page = await signedIn();
    await goTo(page, "Search");
    await tabTo(page, "searchbox", "Words or a question");
    await page.keyboard.type("parental leave");
    await page.keyboard.press("Enter");
    await page.locator("article table").first().waitFor();
    await enterOn(page, "button", "Filters");
    await tabTo(page, "checkbox", "HTML");
    await page.keyboard.press("Space");
    await page.keyboard.press("Escape");
    await expectFocus(page, page.getByRole("button", { name: "Filters: 1" }));
    await expect.poll(() => page.url()).toContain("type=text%2Fhtml");
    await page.getByRole("button", { name: "Clear the filters" }).first().waitFor();
    await goTo(page, "Keys");
    await enterOn(page, "button", "New key");
    await tabTo(page, "textbox", "Name");
    await page.keyboard.type("never created");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await expectFocus(page, page.getByRole("button", { name: "New key" }));
    expect(await page.locator("main table").innerText()).not.toContain("never created");
    await close(page, SIGN_IN);
  });

  test("language, theme, and signing out", async () => {
    const page = await signedIn();
    await enterOn(page, "button", "Options", true);
    await tabTo(page, "radio", "English");
    await page.keyboard.press("ArrowLeft");
    await expectFocus(page, page.getByRole("radio", { name: "한국어" }));
    await page.getByRole("dialog", { name: "화면 설정" }).waitFor();
    await tabTo(page, "radio", "시스템 설정");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await expectFocus(page, page.getByRole("radio", { name: "어둡게" }));
    await expect.poll(() => page.evaluate(() => document.documentElement.dataset.theme)).toBe("dark");
    await page.keyboard.press("Escape");
    await expectFocus(page, page.getByRole("button", { name: "화면 설정" }));
    await enterOn(page, "button", "로그아웃");
    await page.getByRole("heading", { level: 1, name: "로그인" }).waitFor();
    await expectFocus(page, page.getByLabel("키", { exact: true }));
    await close(page, SIGN_IN);
  });
});
