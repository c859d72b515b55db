/** Grades of branches: given in a draft, shown on the tree and on documents, and accepted when they get lower. */
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { close, expectAccessible, expectNoSideways, inBrowser, open, picture, skipped } from "./browser";
import { startService, type Service } from "./service";

let own: Service | undefined;
const url = () => own?.url ?? "";

beforeAll(async () => {
  if (!skipped) own = await startService(inject("samples"));
});
afterAll(() => own?.stop());

inBrowser("taxonomy-grades", () => {
  test("a branch gets a grade, its documents show it, and a lower one has to be accepted", async () => {
    const page = await open("#/taxonomy?at=Samples%2FHandbook", { width: 390 }, url());
    await page.getByRole("button", { name: "Grade" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("combobox", { name: "Grade" }).selectOption("S");
    await expectAccessible(page);
    await expectNoSideways(page);
    await picture(page, "taxonomy-grade-dialog-en-light-390");
    await dialog.getByRole("button", { name: "Add to the draft" }).click();
    await page.getByText("Give Samples › Handbook the grade S").first().waitFor();
    await page.getByRole("button", { name: "Propose as a new version" }).click();
    await page.getByRole("button", { name: "Activate" }).click();
    await dialog.getByRole("button", { name: "Activate" }).click();
    await dialog.waitFor({ state: "detached" });

    await page.evaluate(() => (location.hash = "#/taxonomy?at=Samples%2FHandbook"));
    await page.getByRole("treeitem", { name: /Handbook.*Grade S/ }).waitFor();
    await page.getByText("Its texts go only to models and tools that may be sent grade S.").waitFor();
    await expectAccessible(page);
    await picture(page, "taxonomy-grade-en-light-390");
    const query = `${url()}/documents?category=Samples/Handbook&limit=1`;
    const { documents } = (await (await fetch(query)).json()) as { documents: { document_id: string }[] };
    await page.evaluate((id) => (location.hash = `#/documents/${id}`), documents[0]?.document_id);
    await page.locator("dt", { hasText: /^Grade$/ }).waitFor();
    expect(
      await page
        .locator("dt", { hasText: /^Grade$/ })
        .locator("+ dd")
        .innerText(),
    ).toBe("S");

    await page.evaluate(() => (location.hash = "#/taxonomy?at=Samples%2FHandbook"));
    await page.getByRole("button", { name: "Grade" }).click();
    await dialog.getByRole("combobox", { name: "Grade" }).selectOption("");
    await dialog.getByRole("button", { name: "Add to the draft" }).click();
    await page.getByText("Take away the grade of Samples › Handbook").first().waitFor();
    await page.getByRole("button", { name: "Propose as a new version" }).click();
    await page.getByRole("button", { name: "Activate" }).click();
    await dialog.getByRole("button", { name: "Activate" }).click();
    await dialog.getByText("Tick this first").waitFor();
    await dialog.getByRole("checkbox", { name: /lower grade: Samples\/Handbook \(S → O\)/ }).check();
    await dialog.getByRole("button", { name: "Activate" }).click();
    await dialog.waitFor({ state: "detached" });
    await close(page, /409/);
  });

  test("a public branch with a grade above the lowest is pointed out", async () => {
    const page = await open("", { language: "ko" }, url());
    await page.route("**/settings", async (route) => {
      const answer = (await (await route.fetch()).json()) as { settings: { name: string; value: unknown }[] };
      const settings = answer.settings.map((each) => (each.name === "public" ? { ...each, value: "Samples" } : each));
      await route.fulfill({ json: { ...answer, settings } });
    });
    await page.route("**/taxonomy/active/tree", async (route) => {
      const text = await (await route.fetch()).text();
      await route.fulfill({ contentType: "application/json", body: text.replaceAll('"grade":""', '"grade":"C"') });
    });
    await page.evaluate(() => (location.hash = "#/taxonomy"));
    await page.getByRole("note").getByText("Samples (C)").waitFor();
    await expectAccessible(page);
    await picture(page, "taxonomy-grade-public-ko-light-1280");
    await close(page);
  });
});
