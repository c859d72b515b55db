/** Signing in, out, and being signed out; two tabs; a service that restarts under an open page. */
import { afterAll, beforeAll, expect, inject, test, vi } from "vitest";
import { asked, library, waitForAnswer } from "./asking";
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
    await other.goto(`${keyed.url}/${asked(library.en)}`);
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
    await page.getByRole("button", { name: "Conversations" }).click();
    await page.getByText("Your session has ended. Sign in again.").waitFor();
    await close(page, REFUSED);
  });
});
