import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { close, expectAccessible, expectNoSideways, inBrowser, open, picture, service } from "./browser";
import { expectFailure, FAILURES, REFUSED } from "./states";

interface Listed {
  documents: { document_id: string; title: string; content_type: string; taxonomy_path: string[] }[];
}

const HOLIDAYS =
  "# Holidays-e2e\n\nEmployees have 26 days of holiday a year. Holiday must be requested two weeks before.\n";

async function folder(): Promise<string> {
  const path = join(await mkdtemp(join(tmpdir(), "dtrag-drop-")), "팀 문서");
  await mkdir(path);
  await writeFile(join(path, "guide.md"), "# Guide to the e2e test\n\nThe printer is on floor 3.\n");
  await writeFile(join(path, "empty.txt"), "");
  await writeFile(join(path, "photo.webp"), "no picture");
  await writeFile(join(path, "old.doc"), "an old binary file");
  return path;
}

inBrowser("documents", () => {
  test.each(FAILURES)("when the service answers %s", async (kind) => {
    await expectFailure("documents", "#/documents", "/documents", kind);
  });

  test("a folder is added: progress, an error with its reason, a kind that is not read, and the list to download", async () => {
    const page = await open("#/documents", { width: 360 });
    await page.locator("main li a").first().waitFor();
    await page.locator('input[type="file"][webkitdirectory]').setInputFiles(await folder());
    await page.getByText("Not added").waitFor();
    await page.getByText("1 of 3 files added").waitFor();
    await page.getByText("1 file of kinds that are not read: .webp (1)").waitFor();
    expect(await page.getByText("save it as DOCX").count()).toBe(1);
    await expectAccessible(page);
    await expectNoSideways(page);
    await picture(page, "documents-upload-en-light-360");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download the list" }).click(),
    ]);
    expect(download.suggestedFilename()).toBe("dtrag-upload-failures.csv");
    await page.getByRole("link", { name: "guide.md" }).click();
    await page.getByText("The printer is on floor 3.").waitFor();
    await page.getByRole("button", { name: "Delete" }).click();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Delete it" }).click();
    await page.getByRole("heading", { name: "Documents" }).waitFor();
    await close(page, REFUSED);
  });

  test("a file without a category says where it is and why, and is put elsewhere there", async () => {
    const page = await open("#/documents", { width: 360 });
    await page.locator("main li a").first().waitFor();
    const file = { name: "leave-e2e.md", mimeType: "text/markdown", buffer: Buffer.from(HOLIDAYS) };
    await page.locator('input[type="file"]:not([webkitdirectory])').setInputFiles(file);
    const place = page.getByRole("button", { name: /Samples › .* · \d+%|Waits for review: / });
    await place.click();
    const dialog = page.getByRole("dialog");
    expect(await dialog.locator("li").first().innerText()).toMatch(/Samples|categor/);
    await expectAccessible(page);
    await expectNoSideways(page);
    await picture(page, "documents-upload-category-en-light-360");
    await dialog.getByLabel("Category").fill("Samples/Handbook/Tried");
    await dialog.getByRole("button", { name: "Put it there" }).click();
    await page.getByText("1 of 1 file added").waitFor();
    await expect.poll(() => place.count()).toBe(0);
    const listed = (await (await fetch(`${service}/documents?q=holidays-e2e`)).json()) as Listed;
    expect(listed.documents.map(({ taxonomy_path }) => taxonomy_path)).toEqual([["Samples", "Handbook", "Tried"]]);
    await fetch(`${service}/documents/${listed.documents[0]?.document_id}`, { method: "DELETE" });
    await close(page);
  });

  test("what was sent is read although the page is closed", async () => {
    const page = await open("#/documents");
    await page.locator("main li a").first().waitFor();
    const lines = Array.from({ length: 4_000 }, (_, number) => `Line ${number} of it.\n\n`);
    const file = {
      name: "closed-e2e.md",
      mimeType: "text/markdown",
      buffer: Buffer.from(`# Closed-e2e\n\n${lines.join("")}`),
    };
    await page.locator('input[type="file"]:not([webkitdirectory])').setInputFiles(file);
    // On a quick machine it is read before that shows.
    await page
      .getByText(/^(Reading|Added)$/)
      .first()
      .waitFor();
    await page.context().close();
    const found = async () => ((await (await fetch(`${service}/documents?q=closed-e2e`)).json()) as Listed).documents;
    await expect.poll(async () => (await found()).length, { timeout: 40_000 }).toBe(1);
    await fetch(`${service}/documents/${(await found())[0]?.document_id}`, { method: "DELETE" });
  });

  test("100,000 documents scroll to the end with few requests", async () => {
    const page = await open("");
    const sample = (await (await fetch(`${service}/documents?limit=1`)).json()) as Listed & { total: object };
    const offsets: number[] = [];
    await page.route(
      (url) => url.pathname === "/documents",
      async (route) => {
        const query = new URL(route.request().url()).searchParams;
        const [offset, limit] = [Number(query.get("offset")), Number(query.get("limit"))];
        offsets.push(offset);
        const documents = Array.from({ length: limit }, (_, index) => ({
          ...sample.documents[0],
          document_id: `d-${offset + index}`,
          title: `Document ${offset + index + 1}`,
        }));
        await route.fulfill({ json: { documents, total: { documents: 100_000, chunks: 1 }, limit, offset } });
      },
    );
    await page.evaluate(() => (location.hash = "#/documents"));
    await page.getByText("Document 1", { exact: true }).waitFor();
    await page.getByRole("region", { name: "Documents", exact: true }).focus();
    await page.keyboard.press("End");
    await page.getByText("Document 100000", { exact: true }).waitFor();
    expect(await page.locator("main li a").count()).toBeLessThan(100);
    expect(offsets.length).toBeLessThan(10);
    await close(page);
  });

  test("the list is searched, filtered and sorted; the address holds all of it", async () => {
    const page = await open("#/documents");
    await page.getByLabel("Title or file name").fill("학칙");
    await page.getByText("1 document matches.").waitFor();
    expect(await page.locator("main li a").allInnerTexts()).toEqual(["학칙"]);
    await page.getByLabel("Title or file name").fill("");
    await page.getByText("that you may see").waitFor();
    await page.getByLabel("Order").selectOption("title");
    await page.waitForURL(/sort=title/);
    const listed = (await (await fetch(`${service}/documents?sort=title&limit=1`)).json()) as Listed;
    await page
      .locator("main li")
      .first()
      .getByText(listed.documents[0]?.title ?? "", { exact: true })
      .waitFor();
    await page.getByLabel("In the category").selectOption("Samples/Handbook");
    await page.getByText("documents match.").waitFor();
    await page.reload();
    await page.getByText("documents match.").waitFor();
    expect(await page.getByLabel("In the category").inputValue()).toBe("Samples/Handbook");
    await page.getByLabel("Kind").selectOption("text/csv");
    await page.getByText("No document matches").waitFor();
    await expectAccessible(page);
    await picture(page, "documents-nothing-en-light-1280");
    await page.getByRole("button", { name: "Clear the filters" }).click();
    await page.getByText("that you may see").waitFor();
    expect(page.url()).not.toContain("type=");
    await close(page);
  });

  test("an empty index says what to do", async () => {
    const page = await open("");
    await page.route(
      (url) => url.pathname === "/documents",
      (route) => route.fulfill({ json: { documents: [], total: { documents: 0, chunks: 0 }, limit: 100, offset: 0 } }),
    );
    await page.evaluate(() => (location.hash = "#/documents"));
    await page.getByText("No documents yet").waitFor();
    await expectAccessible(page);
    await picture(page, "documents-empty-en-light-1280");
    await close(page);
  });
});
