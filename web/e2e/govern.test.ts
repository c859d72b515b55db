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

  test("a range whose days are exchanged is an error with a remedy; a reader walks to the first line and back", async () => {
    const page = await open("#/audit?since=2999-01-31&until=2000-01-01");
    await page.getByRole("alert").filter({ hasText: "The first day is after the last one" }).waitFor();
    await expectAccessible(page);
    await picture(page, "audit-reversed-en-light-1280");
    await page.getByRole("button", { name: "Exchange the days" }).click();
    await page.getByRole("table").waitFor();
    const first = (await page.request.get(`${service}/audit?limit=1&before=2`)).json() as Promise<object>;
    expect(await first).toMatchObject({ lines: [{ number: 1 }], before: null });
    await page.evaluate(() => (location.hash = "#/audit?before=2"));
    await page.getByText("Lines 1 to 1").waitFor();
    await page.getByRole("link", { name: "Newest lines" }).click();
    await page.waitForURL((url) => !url.hash.includes("before"));
    await page.getByRole("table").waitFor();
    await close(page);
  });

  test("a line that was removed at the end, and a changed line, are found with what to do", async () => {
    const page = await open("#/audit");
    await page.getByText("Compare with an earlier head").click();
    await page.getByLabel("Earlier head").fill(`999999999:${"0".repeat(64)}`);
    await page.getByRole("button", { name: "Verify the chain" }).click();
    await page.getByRole("alert").filter({ hasText: "before the expected line 999999999" }).waitFor();
    await expectAccessible(page);
    await picture(page, "audit-removed-en-light-1280");
    const damaged = {
      ok: false,
      lines: 41,
      head: `41:${"0".repeat(64)}`,
      first_bad: 42,
      reason: "line 42 was changed",
    };
    await page.route("**/audit/verify*", (route) => route.fulfill({ json: damaged }));
    await page.getByRole("button", { name: "Verify the chain" }).click();
    await page.getByRole("alert").filter({ hasText: "The log was changed at line 42." }).waitFor();
    await page.getByRole("link", { name: "Show the lines there" }).click();
    await page.waitForURL(/before=43/);
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
