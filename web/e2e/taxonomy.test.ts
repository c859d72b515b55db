import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { close, expectAccessible, expectNoSideways, inBrowser, LOOKS, nameOf, open, picture, service } from "./browser";
import { startService, type Service } from "./service";
import { expectFailure, FAILURES } from "./states";

interface Branch {
  path: string[];
  name: string;
  documents: number;
  children: Branch[];
}
const total = (branch: Branch): number => branch.children.reduce((sum, child) => sum + total(child), branch.documents);
const draft = (...operations: object[]) =>
  `#/taxonomy?${operations.map((operation) => `op=${encodeURIComponent(JSON.stringify(operation))}`).join("&")}`;

async function treeOf(page: Page, url: string): Promise<Branch[]> {
  return ((await (await page.request.get(`${url}/taxonomy/active/tree`)).json()) as { tree: Branch[] }).tree;
}

inBrowser("taxonomy", () => {
  let own: Service;
  beforeAll(async () => {
    own = await startService(inject("samples"));
  });
  afterAll(() => own.stop());

  test.each(LOOKS.map((look) => [nameOf(look), look] as const))("%s", async (name, look) => {
    const page = await open(`${draft({ op: "add", path: ["New"] }, { op: "delete", path: ["Gone"] })}&at=New`, look);
    await page.getByRole("tree").waitFor();
    await page.getByRole("alert").filter({ hasText: "Gone" }).waitFor();
    await expectAccessible(page);
    await expectNoSideways(page);
    await picture(page, `taxonomy-draft-${name}`);
    await page.goto(`${service}/#/taxonomy/versions`);
    await page.locator("main li a").first().waitFor();
    await expectAccessible(page);
    await expectNoSideways(page);
    await picture(page, `taxonomy-versions-${name}`);
    await close(page);
  });

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
    await close(page);
  });
});
