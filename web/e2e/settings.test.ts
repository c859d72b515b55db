/** Settings that an administrator changes in the page: by keyboard, with the effect on callers without a key. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test, vi } from "vitest";
import { close, expectAccessible, expectNoSideways, inBrowser, open, picture, type Look } from "./browser";
import { startService, type Service } from "./service";

/** Before a key was given, the service says 401 once; a wrong value is a 422. */
const REFUSED = /401|422/;

inBrowser("changing settings", () => {
  let keyed: Service;
  let secret = "";

  beforeAll(async () => {
    keyed = await startService(inject("samples"), { DTRAG_READER: "off" });
    const created = await keyed.dtrag("keys", "create", "--name", "ada", "--role", "admin");
    secret = String(created.secret);
    const refused = async () => expect((await fetch(`${keyed.url}/session`)).status).toBe(401);
    await vi.waitFor(refused, { timeout: 60_000, interval: 500 });
  });
  afterAll(() => keyed.stop());

  async function signedIn(look: Look = {}, keyless = false): Promise<Page> {
    const page = await open("#/settings", look, keyed.url);
    if (keyless) await page.locator("main").getByRole("button", { name: "Sign in" }).click();
    await page.locator("input[type=password]").fill(secret);
    await page.keyboard.press("Enter");
    await page.getByRole("table").first().waitFor();
    return page;
  }

  const row = (page: Page, name: string) => page.getByRole("row").filter({ hasText: name }).first();

  test("a choice and a number, by keyboard; a wrong value says what to do", async () => {
    const page = await signedIn();
    await page.getByRole("button", { name: "Change DTRAG_DECISION" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.getByRole("radio", { name: "balanced" }).focus();
    await page.keyboard.press("ArrowLeft");
    await expectAccessible(page);
    await picture(page, "settings-choice-en-light-1280");
    await page.getByRole("button", { name: "Save" }).click();
    await page.locator("main").getByText("DTRAG_DECISION is saved.").waitFor();
    await row(page, "DTRAG_DECISION").getByText("careful", { exact: true }).waitFor();
    await row(page, "DTRAG_DECISION")
      .getByText(/changed by ada/)
      .waitFor();
    expect(await page.getByText("Set where the service is started").count()).toBe(1);
    expect(await page.getByRole("button", { name: "Change DTRAG_READER" }).count()).toBe(0);

    await page.getByRole("button", { name: "Change DTRAG_REVIEW_BELOW" }).click();
    await page.getByLabel("Value").fill("7");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").filter({ hasText: "must be from 0 to 1" }).waitFor();
    await expectAccessible(page);
    await page.getByLabel("Value").fill("0.25");
    await page.keyboard.press("Enter");
    await row(page, "DTRAG_REVIEW_BELOW").getByText("0.25", { exact: true }).waitFor();

    await page.getByRole("button", { name: "Change DTRAG_DECISION" }).click();
    await page.getByRole("button", { name: "Back to default" }).click();
    await row(page, "DTRAG_DECISION").getByText("balanced", { exact: true }).waitFor();
    await close(page, REFUSED);
  });

  test("public branches: the effect is shown and accepted before it counts", async () => {
    const page = await signedIn({ language: "ko", width: 360 });
    await page.getByRole("button", { name: "DTRAG_PUBLIC 바꾸기" }).click();
    await page.getByRole("radio", { name: "일부 분류" }).check({ force: true });
    await page.getByRole("treeitem").first().waitFor();
    await page.getByRole("treeitem").first().focus();
    await page.keyboard.press("Space");
    await page.getByRole("button", { name: "달라지는 점 보기" }).click();
    await page.getByText(/키 없이 문서 \d+건을 읽을 수 있게 됩니다/).waitFor();
    await expectAccessible(page);
    await expectNoSideways(page);
    await picture(page, "settings-public-ko-light-360");
    await page.getByRole("button", { name: "저장" }).click();
    await page.getByRole("alert").filter({ hasText: "먼저 동의하거나" }).waitFor();
    expect((await fetch(`${keyed.url}/documents`)).status).toBe(401);
    await page.getByLabel("누구나 지금보다 더 많은 문서를 볼 수 있게 됩니다.").check();
    await page.getByRole("button", { name: "저장" }).click();
    await page
      .locator("main")
      .getByText(/이제 키 없이 문서 \d+건을 읽을 수 있습니다/)
      .waitFor();
    expect((await fetch(`${keyed.url}/documents`)).status).toBe(200);
    await expectNoSideways(page);
    await picture(page, "settings-saved-ko-light-360");
    await close(page, REFUSED);

    const wide = await signedIn({ theme: "dark" }, true);
    await wide.getByRole("button", { name: "Change DTRAG_PUBLIC", exact: true }).click();
    await wide.getByRole("radio", { name: "All categories" }).check({ force: true });
    await wide.getByText("Documents without a category are not shown.").waitFor();
    await expectAccessible(wide);
    await picture(wide, "settings-public-en-dark-1280");
    await wide.getByRole("button", { name: "Back to default" }).click();
    await wide.locator("main").getByText("DTRAG_PUBLIC is saved.").waitFor();
    expect((await fetch(`${keyed.url}/documents`)).status).toBe(401);
    await close(wide, REFUSED);
  });
});
