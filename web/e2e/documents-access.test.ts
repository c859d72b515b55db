/** Documents with real keys and agents: who can see one, what a reader is offered; and a real drop of files. */
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test, vi } from "vitest";
import { close, expectAccessible, inBrowser, open, picture, service } from "./browser";
import { startService, type Service } from "./service";
import { REFUSED } from "./states";

interface Listed {
  documents: { document_id: string; title: string }[];
}

inBrowser("documents with keys", () => {
  let keyed: Service;
  const secrets: Record<string, string> = {};

  beforeAll(async () => {
    keyed = await startService(inject("samples"));
    const create = async (name: string, ...options: string[]) => {
      secrets[name] = String((await keyed.dtrag("keys", "create", "--name", name, ...options)).secret);
    };
    await create("chief", "--role", "admin");
    await create("kim", "--role", "reader", "--scope", "Samples/Handbook");
    await create("lee", "--role", "reader", "--scope", "Samples/University");
    const authorised = async () => {
      const headers = { Authorization: `Bearer ${secrets.lee}` };
      expect((await fetch(`${keyed.url}/session`, { headers })).status).toBe(200);
      expect((await fetch(`${keyed.url}/session`)).status).toBe(401);
    };
    await vi.waitFor(authorised, { timeout: 30_000, interval: 500 });
    const headers = { "Content-Type": "application/json", Authorization: `Bearer ${secrets.chief}` };
    const tree: unknown = await (await fetch(`${keyed.url}/taxonomy/active/tree`, { headers })).json();
    const response = await fetch(`${keyed.url}/agents/from-category`, {
      method: "POST",
      headers,
      body: JSON.stringify({
        name: "Handbook agent",
        version: (tree as { version: string }).version,
        node_paths: [["Samples", "Handbook"]],
      }),
    });
    expect(response.status).toBe(200);
  });
  afterAll(() => keyed.stop());

  async function signedIn(name: string): Promise<Page> {
    const page = await open("", {}, keyed.url);
    await page.getByLabel("Key", { exact: true }).fill(secrets[name] ?? "");
    await page.keyboard.press("Enter");
    await page.getByText(name).first().waitFor();
    return page;
  }

  test("who can see a document: keys and agents, each with the branch through which it sees it", async () => {
    const headers = { Authorization: `Bearer ${secrets.chief}` };
    const listed = (await (await fetch(`${keyed.url}/documents?q=leave`, { headers })).json()) as Listed;
    const page = await signedIn("chief");
    await page.evaluate((id) => (location.hash = `#/documents/${id}?show=who`), listed.documents[0]?.document_id);
    await page.getByRole("heading", { name: "2 keys" }).waitFor();
    const rows = await page.locator("main tbody tr").allInnerTexts();
    expect(rows.find((row) => row.startsWith("chief"))).toContain("It sees all categories.");
    expect(rows.find((row) => row.startsWith("kim"))).toContain("Its scope has Samples › Handbook.");
    expect(rows.find((row) => row.startsWith("Handbook agent"))).toContain("Its scope has Samples › Handbook.");
    expect(rows.some((row) => row.startsWith("lee"))).toBe(false);
    await expectAccessible(page);
    await picture(page, "documents-who-keys-en-light-1280");
    await close(page, REFUSED);
  });

  test("a reader reads a document of its scope by its address, and sees no list of who else may", async () => {
    const page = await signedIn("kim");
    const { documents } = (await (await page.request.get(`${keyed.url}/documents?q=leave`)).json()) as Listed;
    await page.evaluate((id) => (location.hash = `#/documents/${id}`), documents[0]?.document_id);
    await page.getByText("Who can see this").click();
    await page.getByText("You see it because your key has these categories: Samples/Handbook.").waitFor();
    expect(await page.getByRole("button", { name: "Delete" }).count()).toBe(0);
    await expectAccessible(page);
    await close(page, REFUSED);
  });

  test("files and a folder are dropped: each is sent, what fails says why and can be tried again", async () => {
    const folder = join(await mkdtemp(join(tmpdir(), "dtrag-drop-")), "팀");
    const alone = join(folder, "..", "alone.md");
    await mkdir(join(folder, "below"), { recursive: true });
    await writeFile(alone, "# Alone in the drop\n\nA lonely page.\n");
    await writeFile(join(folder, "below", "deep.md"), "# Deep in the drop\n\nA page in a folder.\n");
    await writeFile(join(folder, "empty.txt"), "");
    await writeFile(join(folder, "photo.webp"), "no picture");
    const page = await open("#/documents");
    await page.locator("main li a").first().waitFor();
    const box = await page.getByText("Drop files or folders here").boundingBox();
    const debug = await page.context().newCDPSession(page);
    const data = { items: [], files: [alone, folder], dragOperationsMask: 1 };
    const at = { x: (box?.x ?? 0) + 5, y: (box?.y ?? 0) + 5, data };
    for (const type of ["dragEnter", "dragOver", "drop"] as const)
      await debug.send("Input.dispatchDragEvent", { type, ...at });
    await page.getByText("2 of 3 files added").waitFor();
    await page.getByText("1 file of kinds that are not read: .webp (1)").waitFor();
    await expectAccessible(page);
    await picture(page, "documents-dropped-en-light-1280");
    const again = page.waitForRequest((request) => request.method() === "POST" && request.url().endsWith("/documents"));
    await page.getByRole("button", { name: /^Try .*empty\.txt again$/ }).click();
    await again;
    await page.getByText("2 of 3 files added").waitFor();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download the list" }).click(),
    ]);
    expect(download.suggestedFilename()).toBe("dtrag-upload-failures.csv");
    const listed = (await (await fetch(`${service}/documents?q=in the drop`)).json()) as Listed;
    expect(listed.documents.map((document) => document.title).sort()).toEqual([
      "Alone in the drop",
      "Deep in the drop",
    ]);
    for (const document of listed.documents)
      await fetch(`${service}/documents/${document.document_id}`, { method: "DELETE" });
    await close(page, REFUSED);
  });
});
