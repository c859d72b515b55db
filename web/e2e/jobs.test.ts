import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { close, expectAccessible, expectNoSideways, inBrowser, open, picture } from "./browser";
import { startService, type Service } from "./service";

const LINES = Array.from({ length: 20_000 }, (_, number) => `Line ${number} of the long text.\n\n`).join("");

inBrowser("jobs", () => {
  let own: Service;
  beforeAll(async () => {
    own = await startService(inject("samples"));
  });
  afterAll(() => own.stop());

  async function queue(name: string, text: string): Promise<void> {
    const body = new FormData();
    body.append("category", "Samples/Jobs");
    body.append("files", new File([text], name, { type: "text/markdown" }));
    const response = await fetch(`${own.url}/documents?wait=false`, { method: "POST", body });
    expect(response.status).toBe(202);
  }

  test("a job is cancelled, one fails and is tried again, one ends and leads to its document", async () => {
    const page = await open("", { width: 390 }, own.url);
    await queue("long-e2e.md", `# Long-e2e\n\n${LINES}`);
    await queue("long-e2e.md", "# Later-e2e\n\nThis waits for the first one of its name.\n");
    await queue("empty-e2e.md", "");
    await page.evaluate(() => (location.hash = "#/documents"));
    const rows = page.getByRole("region", { name: "Background jobs" }).getByRole("listitem");
    const shown = (name: string, state: RegExp) => rows.filter({ hasText: name }).filter({ hasText: state }).waitFor();
    await rows.filter({ hasText: "Waiting" }).getByRole("button", { name: "Cancel Upload: long-e2e.md" }).click();
    await shown("long-e2e.md", /Cancelled/);
    expect(await page.locator("summary:focus").count()).toBe(1);
    await shown("long-e2e.md", /Running/);
    await expectAccessible(page);
    await expectNoSideways(page);
    await picture(page, "documents-jobs-running-en-light-390");
    await shown("long-e2e.md", /1\/1\s*Done/);
    await page.getByRole("link", { name: "Long-e2e", exact: true }).waitFor(); // in the list of documents, by itself
    await shown("empty-e2e.md", /Failed/);
    await expectAccessible(page);
    await expectNoSideways(page);
    await picture(page, "documents-jobs-en-light-390");
    await page.setViewportSize({ width: 1280, height: 800 });
    await picture(page, "documents-jobs-en-light-1280");
    const retried = page.waitForResponse((response) => response.url().endsWith("/retry"));
    await page.getByRole("button", { name: "Try Upload: empty-e2e.md again" }).click();
    expect((await retried).status()).toBe(200);
    await shown("empty-e2e.md", /Failed/);
    await rows.getByRole("link", { name: "Upload: long-e2e.md" }).click();
    await page.getByText("Line 0 of the long text.").waitFor();
    const listed = (await (await fetch(`${own.url}/documents?q=later-e2e`)).json()) as { documents: object[] };
    expect(listed.documents).toEqual([]);
    await close(page);
  });
});
