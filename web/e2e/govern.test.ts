import { expect, test } from "vitest";
import { close, expectAccessible, expectNoSideways, inBrowser, open, picture, service } from "./browser";
import { expectFailure, FAILURES } from "./states";

const VIEWS = ["keys", "audit", "settings"] as const;
const ROUTES = { keys: "/keys", audit: "/audit", settings: "/settings" };

inBrowser("governance", () => {
  test.each(VIEWS.flatMap((view) => FAILURES.map((kind) => [view, kind] as const)))(
    "%s when the service answers %s",
    async (view, kind) => {
      await expectFailure(view, `#/${view}`, ROUTES[view], kind);
    },
  );

  test("the log is searched and verified by keyboard", async () => {
    const page = await open("#/audit");
    await page.request.get(`${service}/documents`);
    await page.reload();
    await page.getByRole("table").waitFor();
    await page.getByLabel("Action").focus();
    await page.keyboard.type("GET /documents");
    await page.keyboard.press("Enter");
    await page.waitForURL(/action=GET/);
    await page.getByRole("table").waitFor();
    await page.getByRole("button", { name: "Verify the chain" }).focus();
    await page.keyboard.press("Enter");
    await page
      .getByText(/unchanged/)
      .first()
      .waitFor();
    await expectAccessible(page);
    await close(page);
  });

  test("the form of a new key", async () => {
    const page = await open("#/keys", { width: 360 });
    await page.getByRole("button", { name: "New key" }).first().click();
    await page.getByRole("dialog").waitFor();
    expect(await page.getByRole("button", { name: "Create the key" }).isDisabled()).toBe(true);
    await page.getByLabel("Name").fill("HR desk");
    expect(await page.getByRole("button", { name: "Create the key" }).isDisabled()).toBe(false);
    await expectAccessible(page);
    await expectNoSideways(page);
    await picture(page, "keys-new-en-light-360");
    await page.keyboard.press("Escape");
    expect(
      await page
        .getByRole("button", { name: "New key" })
        .first()
        .evaluate((el) => el === document.activeElement),
    ).toBe(true);
    await close(page);
  });
});
