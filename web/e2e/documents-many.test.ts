/** Changes of many documents: selected, looked at, made; and what others did in between. */
import { expect, test } from "vitest";
import { close, expectAccessible, expectNoSideways, inBrowser, open, picture, service } from "./browser";
import { REFUSED } from "./states";

interface Listed {
  documents: { document_id: string }[];
}

async function add(name: string, category: string): Promise<void> {
  const form = new FormData();
  form.append("files", new File([`# ${name[0]?.toUpperCase()}${name.slice(1, -3)}\n\nOne of many.\n`], name));
  form.append("category", category);
  const added = await fetch(`${service}/documents`, { method: "POST", body: form });
  expect(added.status).toBe(201);
}

const many = async () => ((await (await fetch(`${service}/documents?category=Many`)).json()) as Listed).documents;

inBrowser("documents-many", () => {
  test("many documents are selected, moved after a look, and deleted unless somebody was faster", async () => {
    for (const number of [1, 2, 3, 4, 5]) await add(`many-${number}.md`, number === 5 ? "Many/Two" : "Many/One");
    const page = await open("#/documents?branch=Many%2FOne&sort=title", { width: 390 });
    await page.getByRole("checkbox", { name: "Select Many-1" }).click();
    await page.getByRole("checkbox", { name: "Select Many-3" }).click({ modifiers: ["Shift"] });
    await page.getByText("3 selected.").waitFor();
    expect(await page.getByRole("checkbox", { checked: true }).count()).toBe(3);
    await expectAccessible(page);
    await expectNoSideways(page);
    await picture(page, "documents-many-en-light-390");
    await page.getByRole("button", { name: "Move to category…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("searchbox", { name: "Search categories" }).fill("Two");
    await dialog.getByRole("treeitem", { name: "Two" }).click();
    await dialog.getByRole("button", { name: "Move to Many › Two" }).click();
    await dialog.getByText("3 documents move to Many › Two, with 3 passages.").waitFor();
    await expectAccessible(page);
    await expectNoSideways(page);
    await picture(page, "documents-many-move-en-light-390");
    await dialog.getByRole("button", { name: "Move now" }).click();
    await page.getByText("1 document matches.").waitFor();
    expect(await page.getByText("selected.").count()).toBe(0);

    await page.evaluate(() => (location.hash = "#/documents?branch=Many"));
    await page.getByText("5 documents match.").waitFor();
    await page.getByRole("button", { name: "Select all 5" }).click();
    await page.getByText("5 selected.").waitFor();
    await page.getByRole("button", { name: "Delete…" }).click();
    await dialog.getByText("5 documents are deleted with 5 passages").waitFor();
    await dialog.getByText("Many › Two: 4").waitFor();
    await fetch(`${service}/documents/${(await many())[0]?.document_id}`, { method: "DELETE" });
    await dialog.getByRole("button", { name: "Delete now" }).click();
    await dialog.getByText("The documents have changed since the dry run").waitFor();
    await dialog.getByText("4 documents are deleted").waitFor();
    await dialog.getByText("1 stays as it is").waitFor();
    await picture(page, "documents-many-conflict-en-light-390");
    expect((await many()).length).toBe(4);
    await dialog.getByRole("button", { name: "Delete now" }).click();
    await page.getByText("No document matches").waitFor();
    expect(await many()).toEqual([]);
    await close(page, REFUSED);
  });

  test("a move that others would see asks for a tick first", async () => {
    const page = await open("#/documents", { language: "ko" });
    await page.getByRole("checkbox").first().waitFor();
    await page.route("**/documents/changes", async (route) => {
      const response = await route.fetch();
      const access = [{ kind: "public", name: "public", gained: 1, lost: 0, gains: [], losses: [] }];
      const lowered = [{ path: ["Samples"], from: "S", to: "O" }];
      await route.fulfill({ json: { ...((await response.json()) as object), widened: true, access, lowered } });
    });
    await page.getByRole("checkbox").first().click();
    await page.getByRole("button", { name: "분류 옮기기…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("treeitem", { name: "Samples" }).click();
    await dialog.getByRole("button", { name: "Samples(으)로 옮기기" }).click();
    await dialog.getByRole("button", { name: "옮기기" }).click();
    await dialog.getByText("먼저 선택하세요").waitFor();
    expect(await dialog.getByRole("checkbox").count()).toBe(2);
    await expectAccessible(page);
    await picture(page, "documents-many-accept-ko-light-1280");
    await close(page);
  });
});
