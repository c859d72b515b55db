/** Signing in, out, and being signed out; two tabs; a service that restarts under an open page. */
import { afterAll, beforeAll, expect, inject, test, vi } from "vitest";
import { askLinked, library, linkTo, openAsked, waitForAnswer } from "./asking";
import { close, expectAccessible, inBrowser, LANGUAGES, open, picture } from "./browser";
import { startService, type Service } from "./service";

const REFUSED = /Failed to load resource|net::ERR/;

inBrowser("session", () => {
  let keyed: Service;
  let secret: string;

  beforeAll(async () => {
    keyed = await startService(inject("samples"));
    secret = String((await keyed.dtrag("keys", "create", "--name", "kim", "--role", "reader")).secret);
    await refused({});
  });
  afterAll(() => keyed.stop());

  /** Waits until the service refuses this caller: it takes some seconds to notice keys of another process. */
  async function refused(headers: Record<string, string>) {
    const check = async () => expect((await fetch(`${keyed.url}/session`, { headers })).status).toBe(401);
    await vi.waitFor(check, { timeout: 30_000, interval: 500 });
  }

  async function accepted(headers: Record<string, string>) {
    const check = async () => expect((await fetch(`${keyed.url}/session`, { headers })).status).toBe(200);
    await vi.waitFor(check, { timeout: 30_000, interval: 500 });
  }

  async function signedIn() {
    const page = await open("", {}, keyed.url);
    await page.getByLabel("Key", { exact: true }).fill(secret);
    await page.keyboard.press("Enter");
    await page.getByText("kim").first().waitFor();
    return page;
  }

  test.each(LANGUAGES)("signing in looks right in %s", async (language) => {
    for (const width of [360, 1280]) {
      const page = await open("", { language, width }, keyed.url);
      await expectAccessible(page);
      await picture(page, `sign-in-${language}-${width}`);
      await close(page, REFUSED);
    }
  });

  test("a wrong key is refused in words, the right one opens the page, and no script can read the cookie", async () => {
    const page = await open("", {}, keyed.url);
    await page.keyboard.press("Enter");
    await page.getByText("Paste a key first.").waitFor();
    await page.getByLabel("Key", { exact: true }).fill("dtrag_wrong");
    await page.keyboard.press("Enter");
    await page.getByText("The service does not accept this key.", { exact: false }).waitFor();
    await expectAccessible(page);
    await page.getByLabel("Key", { exact: true }).fill(secret);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Ask your documents" }).waitFor();
    expect(await page.evaluate(() => document.cookie)).toBe("");
    const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
    expect(stored).not.toContain(secret);
    await page.reload();
    await page.getByText("kim").first().waitFor();
    await close(page, REFUSED);
  });

  test("tabs agree on language, theme and the end of the session", async () => {
    const page = await signedIn();
    const other = await page.context().newPage();
    await other.goto(`${keyed.url}/${linkTo(library.en)}`);
    await askLinked(other);
    await waitForAnswer(other);
    await page.keyboard.press("?");
    await page.getByText("한국어").click();
    await page.getByText("어둡게").click();
    await other.getByRole("button", { name: "질문하기" }).waitFor();
    await expect.poll(() => other.evaluate(() => document.documentElement.dataset.theme)).toBe("dark");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "로그아웃" }).click();
    await other.getByRole("heading", { name: "로그인" }).waitFor();
    await expect.poll(() => other.evaluate(() => sessionStorage.length)).toBe(0);
    await close(page, REFUSED);
  });

  test("answers of a former caller do not stay in a tab that is reloaded after another tab signed in", async () => {
    const lee = String((await keyed.dtrag("keys", "create", "--name", "lee", "--role", "reader")).secret);
    await accepted({ Authorization: `Bearer ${lee}` });
    const page = await signedIn();
    const other = await page.context().newPage();
    await other.goto(`${keyed.url}/${linkTo(library.en)}`);
    await askLinked(other);
    await waitForAnswer(other);
    expect(await other.evaluate(() => sessionStorage.getItem("dtrag.answers"))).toContain("26 days");
    await other.goto("about:blank"); // it hears nothing of the other tab meanwhile
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Key", { exact: true }).fill(lee);
    await page.keyboard.press("Enter");
    await page.getByText("lee").first().waitFor();
    await other.goto(keyed.url);
    await other.getByText("lee").first().waitFor();
    expect(await other.evaluate(() => sessionStorage.getItem("dtrag.answers"))).toBeNull();
    await close(page, REFUSED);
  });

  test("the first key is made by the local administrator; then everybody must sign in", async () => {
    const unkeyed = await startService(inject("samples"));
    const page = await open("#/keys", {}, unkeyed.url);
    const other = await open("", {}, unkeyed.url);
    await page.getByText("No keys: this machine").waitFor();
    await page.getByRole("button", { name: "New key" }).first().click();
    await page.getByLabel("Name").fill("first");
    await page.getByRole("button", { name: "Create the key" }).click();
    await expect.poll(() => page.locator("dialog code").innerText()).toMatch(/^dtrag_/);
    const made = await page.locator("dialog code").innerText();
    await expectAccessible(page);
    await page
      .getByRole("dialog")
      .getByRole("button", { name: /sign in/i })
      .click();
    await page.getByRole("button", { name: "Sign out" }).waitFor();
    await page.locator("main table").getByText("first", { exact: false }).first().waitFor();
    expect(await page.locator("body").innerText()).not.toContain(made);
    await other.reload();
    await other.getByRole("heading", { name: "Sign in" }).waitFor();
    await other.getByLabel("Key", { exact: true }).fill(made);
    await other.keyboard.press("Enter");
    await other.getByText("first").first().waitFor();
    await close(other, REFUSED);
    await close(page, REFUSED);
    await unkeyed.stop();
  });

  test("a service that restarts is noticed and recovered from; the session goes on", async () => {
    const page = await signedIn();
    await keyed.end();
    await page.getByRole("textbox", { name: "Question" }).fill(library.en);
    await page.keyboard.press("Enter");
    await page.getByText("The service does not respond.", { exact: false }).first().waitFor();
    await picture(page, "state-restart");
    await expectAccessible(page);
    await keyed.begin();
    await page.getByText("The service is back.").first().waitFor();
    await waitForAnswer(page);
    await close(page, REFUSED);
  });

  test("a revoked key ends the session with a sentence", async () => {
    const page = await signedIn();
    await keyed.dtrag("keys", "revoke", "kim");
    await refused({ Authorization: `Bearer ${secret}` });
    await page.evaluate(() => (location.hash = "#/regulations"));
    await page.getByText("Your session has ended. Sign in again.").waitFor();
    await close(page, REFUSED);
  });
});

inBrowser("public branches", () => {
  let service: Service;
  let secret: string;

  beforeAll(async () => {
    service = await startService(inject("samples"), { DTRAG_PUBLIC: "Samples" });
    secret = String((await service.dtrag("keys", "create", "--name", "kim", "--role", "reader")).secret);
  });
  afterAll(() => service.stop());

  test.each([
    { language: "en", theme: "light", width: 1280 },
    { language: "ko", theme: "dark", width: 360 },
  ] as const)("are asked about and read without a key: %o", async (look) => {
    const page = await openAsked(library[look.language], look, service.url);
    await waitForAnswer(page);
    await expectAccessible(page);
    await picture(page, `public-${look.language}-${look.width}`);
    await page
      .getByRole("textbox", { name: /Question|질문/ })
      .fill(look.language === "en" ? "And sick leave?" : "연체료는 얼마인가요?");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.locator('article[aria-busy="false"]').count()).toBe(2);
    const talks = page.getByRole("button", { name: /Conversations|대화/ });
    expect(await talks.count()).toBe(0);
    await page.goto(`${service.url}/#/regulations`);
    await page.locator("main table, main li").first().waitFor();
    await page.goto(`${service.url}/#/keys`);
    await page.getByText(/for administrators of all categories|관리자의 화면입니다/).waitFor();
    await expectAccessible(page);
    await page.getByRole("link", { name: /Go to Ask|질문 화면으로/ }).waitFor();
    await page
      .locator("main")
      .getByRole("button", { name: /Sign in|로그인/ })
      .click();
    await page.getByRole("heading", { name: /Sign in|로그인/ }).waitFor();
    await page.getByRole("button", { name: /Continue without a key|키 없이 계속하기/ }).click();
    await page.getByRole("textbox", { name: /Question|질문/ }).waitFor();
    await close(page, REFUSED);
  });

  test("a key signs in, and signing out leads back", async () => {
    const page = await open("", {}, service.url);
    await page.getByText("Without a key").first().waitFor();
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("button", { name: "Continue without a key" }).click();
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByLabel("Key", { exact: true }).fill(secret);
    await page.keyboard.press("Enter");
    await page.getByText("kim").first().waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByText("Without a key").first().waitFor();
    await page.reload();
    await page.getByText("Without a key").first().waitFor();
    await close(page, REFUSED);
  });
});
