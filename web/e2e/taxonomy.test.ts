import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { close, expectAccessible, expectNoSideways, inBrowser, open, picture } from "./browser";
import { startService, type Service } from "./service";
import { expectFailure, FAILURES } from "./states";

interface Branch {
  path: string[];
  name: string;
  documents: number;
  children: Branch[];
}
const total = (branch: Branch): number => branch.children.reduce((sum, child) => sum + total(child), branch.documents);

async function treeOf(page: Page, url: string): Promise<Branch[]> {
  return ((await (await page.request.get(`${url}/taxonomy/active/tree`)).json()) as { tree: Branch[] }).tree;
}

inBrowser("taxonomy", () => {
  let own: Service;
  beforeAll(async () => {
    own = await startService(inject("samples"));
  });
  afterAll(() => own.stop());

  test.each(FAILURES)("when the service answers %s", async (kind) => {
    await expectFailure("taxonomy", "#/taxonomy", "/taxonomy/active/tree", kind);
    await expectFailure("taxonomy-versions", "#/taxonomy/versions", "/taxonomy", kind);
  });

  test("by keyboard alone: add, rename, remove and undo", async () => {
    const page = await open("#/taxonomy", { width: 320 }, own.url);
    const tree = await treeOf(page, own.url);
    const first = tree[0] as Branch;
    const name = page.getByRole("textbox", { name: "Name" });
    await page.getByRole("treeitem").first().focus();
    await page.keyboard.press("Insert");
    await name.and(page.locator(":focus")).waitFor();
    await page.keyboard.type(first.children[0]?.name ?? first.name);
    if (first.children.length > 0) {
      await page.keyboard.press("Enter");
      await page.getByText("There is a category").waitFor();
      await expectAccessible(page);
    }
    await name.fill("Added here");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    const added = page.getByRole("treeitem", { name: /^Added here/ });
    await added.and(page.locator(":focus")).waitFor();
    await page.keyboard.press("F2");
    await name.and(page.locator(":focus")).waitFor();
    await page.keyboard.type("Renamed here");
    await page.keyboard.press("Enter");
    await page
      .getByRole("treeitem", { name: /^Renamed here/ })
      .and(page.locator(":focus"))
      .waitFor();
    await page.keyboard.press("Delete");
    await page.getByRole("dialog").waitFor();
    await expectAccessible(page);
    await expectNoSideways(page);
    await picture(page, "taxonomy-remove-en-light-320");
    await page.getByRole("button", { name: "Add to the draft" }).press("Enter");
    await page.getByText("3 changes, not yet").waitFor();
    await page.getByRole("button", { name: "Undo the last" }).press("Enter");
    await page.getByText("2 changes, not yet").waitFor();
    await close(page);
  });

  test("Back and Forward of the browser, and Ctrl+Z, walk through the draft; a reload keeps it", async () => {
    const page = await open("#/taxonomy", {}, own.url);
    const items = page.locator("[aria-labelledby$=-title] ol > li");
    const expectChanges = (n: number) => expect.poll(() => items.count()).toBe(n);
    for (const name of ["First", "Second"]) {
      await page.getByRole("button", { name: "Add at the top" }).click();
      await page.getByRole("textbox", { name: "Name" }).fill(name);
      await page.keyboard.press("Enter");
      await page.getByRole("treeitem", { name: new RegExp(`^${name}`) }).waitFor();
    }
    await expectChanges(2);
    await page.goBack();
    await expectChanges(1);
    expect(await page.getByRole("treeitem", { name: /^Second/ }).count()).toBe(0);
    await page.goForward();
    await expectChanges(2);
    await page.getByRole("treeitem", { name: /^Second/ }).focus();
    await page.keyboard.press("Control+z");
    await expectChanges(1);
    await page.locator("[role=treeitem]:focus").waitFor();
    await page.keyboard.press("Control+z");
    await expectChanges(0);
    await page.getByText("No changes.").waitFor();
    await expectAccessible(page);
    await page.reload();
    const again = page.getByRole("button", { name: "Redo" });
    await again.focus();
    await page.keyboard.press("Enter");
    await page.keyboard.press("Enter");
    await expectChanges(2);
    await expect.poll(() => again.getAttribute("aria-disabled")).toBe("true");
    await page.getByRole("button", { name: "Discard all" }).press("Enter");
    await expectChanges(0);
    await page.getByRole("heading", { name: "Draft" }).and(page.locator(":focus")).waitFor();
    await close(page);
  });

  test("by keyboard alone at 320 px: split by keywords and by hand, activate, roll back", async () => {
    const page = await open("#/taxonomy?at=Samples%2FHandbook", { width: 320 }, own.url);
    const before = await treeOf(page, own.url);
    await page.getByRole("button", { name: "Split", exact: true }).press("Enter");
    const dialog = page.getByRole("dialog");
    const name = (n: number) => dialog.getByRole("group", { name: `Part ${n}` }).getByRole("textbox", { name: "Name" });
    await name(1).and(page.locator(":focus")).waitFor();
    await dialog.getByRole("button", { name: "Add to the draft" }).press("Enter");
    await dialog.getByText("Give at least one part a name.").waitFor();
    await name(1).fill("Money");
    await dialog.getByRole("group", { name: "Part 1" }).getByLabel("Keywords").fill("receipts, hotel");
    await name(2).fill("money");
    await dialog.getByRole("button", { name: "Add to the draft" }).press("Enter");
    await dialog.getByText("There is a category “money”").waitFor();
    await name(2).fill("Devices");
    await dialog.getByRole("button", { name: "Another part" }).press("Enter");
    await name(3).and(page.locator(":focus")).waitFor();
    await dialog.getByRole("button", { name: "Remove part 3" }).press("Enter");
    await name(2).and(page.locator(":focus")).waitFor();
    await dialog.getByText("Pick single documents").press("Enter");
    await dialog.getByRole("searchbox").fill("laptop equipment");
    await page.keyboard.press("Enter");
    await dialog.getByLabel("Where “Equipment and Remote Work” goes").selectOption({ label: "Devices" });
    await dialog.getByRole("button", { name: /^Do not pick “Equipment/ }).waitFor();
    await expectAccessible(page);
    await expectNoSideways(page);
    await picture(page, "taxonomy-split-en-light-320");
    await page.setViewportSize({ width: 1280, height: 800 });
    await picture(page, "taxonomy-split-en-light-1280");
    await page.setViewportSize({ width: 320, height: 800 });
    await dialog.getByRole("button", { name: "Add to the draft" }).press("Enter");
    await page.getByRole("listitem").filter({ hasText: "Split Samples › Handbook into Money (receipts" }).waitFor();
    await page.getByRole("treeitem", { name: /^Devices/ }).waitFor();
    await page.getByRole("button", { name: "Propose as a new version" }).press("Enter");
    await page.getByText("2 documents move to another category.").waitFor();
    await page.getByText("For example: Equipment and Remote Work").waitFor();
    await page.getByText("For example: Expenses and Travel").waitFor();
    await page.getByText("No key or agent gains or loses sight of a document.").waitFor();
    await expectAccessible(page);
    await picture(page, "taxonomy-split-impact-en-light-320");
    await page.getByRole("button", { name: "Activate" }).press("Enter");
    await dialog.getByRole("button", { name: "Activate" }).press("Enter");
    await page.getByText("Active", { exact: true }).first().waitFor();
    await page.getByRole("heading", { name: /^Version/ }).waitFor();
    const parts = (await treeOf(page, own.url))[0]?.children.find((branch) => branch.name === "Handbook")?.children;
    expect(parts?.map((part) => [part.name, part.documents])).toEqual([
      ["Devices", 1],
      ["Money", 1],
    ]);

    await page.getByRole("link", { name: "Versions" }).press("Enter");
    await page.getByRole("link", { name: "1.0.0" }).press("Enter");
    await page.getByText("What rolling back to it would do").waitFor();
    await page.getByText("2 documents move to another category.").waitFor();
    await page.getByRole("button", { name: "Roll back to it" }).press("Enter");
    await dialog.getByRole("button", { name: "Roll back to it" }).press("Enter");
    await page.getByText("Version 1.0.0 is active.").waitFor({ state: "attached" });
    await expectAccessible(page);
    expect(await treeOf(page, own.url)).toEqual(before);
    await close(page);
  });

  test("wider access is shown with examples, and must be accepted", async () => {
    const page = await open("#/taxonomy", {}, own.url);
    const [into, from] = (await treeOf(page, own.url))[0]?.children as [Branch, Branch];
    await page.request.post(`${own.url}/agents/from-category`, {
      data: { name: "narrow", version: "1.0.0", node_paths: [into.path] },
    });
    await page.goto(`${own.url}/#/taxonomy?at=${encodeURIComponent(from.path.join("/"))}`);
    await page.getByRole("button", { name: "Merge", exact: true }).click();
    await page.getByRole("button", { name: "Add to the draft" }).click();
    await page.getByText("Select a target first.").waitFor();
    await page.getByRole("dialog").getByRole("treeitem", { name: into.name }).first().click();
    await page.getByRole("button", { name: "Add to the draft" }).click();
    await page.getByRole("button", { name: "Propose as a new version" }).click();
    await page.getByText("Would see").first().waitFor();
    await page.getByText("Agent narrow").waitFor();
    await page
      .getByText(`gains ${total(from)}`)
      .first()
      .waitFor();
    await expectAccessible(page);
    await picture(page, "taxonomy-impact-en-light-1280");
    await page.getByRole("button", { name: "Activate" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Activate" }).click();
    await page.getByText("Tick this first").waitFor();
    await expectAccessible(page);
    await picture(page, "taxonomy-accept-en-light-1280");
    await page.getByRole("checkbox").check();
    await page.getByRole("dialog").getByRole("button", { name: "Activate" }).click();
    await page.getByText("Active", { exact: true }).first().waitFor();
    expect((await treeOf(page, own.url))[0]?.children.map((branch) => branch.name)).not.toContain(from.name);
    await page.goto(`${own.url}/#/taxonomy/versions/1.0.0`);
    await page.getByText("Would no longer see").waitFor();
    await page
      .getByText(`loses ${total(from)}`)
      .first()
      .waitFor();
    await page.getByRole("button", { name: "Roll back to it" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Roll back to it" }).click();
    await page.getByText("Active", { exact: true }).first().waitFor();
    expect((await treeOf(page, own.url))[0]?.children.map((branch) => branch.name)).toContain(from.name);
    await close(page);
  });
});
