/** What a reader and a reader of one branch see and may do: no offer that the service refuses. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test, vi } from "vitest";
import { password } from "./asking";
import { close, expectAccessible, expectNoSideways, inBrowser, open, picture, type Look } from "./browser";
import { startService, type Service } from "./service";

const LEAVE = "How many days of paid annual leave does a full-time employee have?";
const BOOKS = "도서관에서 학부생은 책을 몇 권까지 빌릴 수 있나요?";
const HANDBOOK = ["Samples", "Handbook"];
const UNIVERSITY = ["Samples", "University"];
/** All are asked in the whole tree. The answer to the last is in the handbook, but no audience is chosen for its case. */
const QUESTIONS = [
  { message: LEAVE, audience: HANDBOOK },
  { message: BOOKS, audience: UNIVERSITY },
  { message: password, audience: undefined },
];
/** Before a key was given, the service says 401 once. */
const SIGN_IN = /401/;

inBrowser("roles", () => {
  let keyed: Service;
  const secrets: Record<string, string> = {};
  const agents: Record<string, string> = {};

  async function json<T>(path: string, body?: unknown, method = body === undefined ? "GET" : "POST"): Promise<T> {
    const response = await fetch(`${keyed.url}${path}`, {
      method,
      headers: { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }

  beforeAll(async () => {
    keyed = await startService(inject("samples"), { CBR_ENABLED: "true", DTRAG_REVIEW_BELOW: "1" });
    const { version } = await json<{ version: string }>("/taxonomy/active/tree");
    for (const path of [HANDBOOK, UNIVERSITY]) {
      const name = path.at(-1) ?? "";
      const body = { name, version, node_paths: [path] };
      agents[name] = (await json<{ agent_id: string }>("/agents/from-category", body)).agent_id;
    }
    for (const { message, audience } of QUESTIONS) {
      const { metadata } = await json<{ metadata: { trace_id: string } }>("/chat/run", { message });
      const vote = { trace_id: metadata.trace_id, thumbs: "up" };
      const { case_id } = await json<{ case_id: string | null }>("/chat/feedback", vote);
      expect(case_id, message).toBeTruthy();
      if (audience) await json(`/cbr/cases/${case_id}`, { category_path: audience }, "PUT");
    }
    await json("/taxonomy", { operations: [{ op: "add", path: ["Plan"] }], rationale: "A secret plan" });
    const keys = { reader: [], desk: ["--scope", HANDBOOK.join("/")] };
    for (const [name, scope] of Object.entries(keys))
      secrets[name] = String((await keyed.dtrag("keys", "create", "--name", name, ...scope)).secret);
    // It takes some seconds to notice keys of another process.
    const refused = async () => expect((await fetch(`${keyed.url}/session`)).status).toBe(401);
    await vi.waitFor(refused, { timeout: 60_000, interval: 500 });
  });
  afterAll(() => keyed.stop());

  async function signedIn(name: string, at: string, look: Look = {}): Promise<Page> {
    const page = await open(at, look, keyed.url);
    await page.locator("input[type=password]").fill(secrets[name] ?? "");
    await page.keyboard.press("Enter");
    await page.locator("input[type=password]").waitFor({ state: "detached" });
    return page;
  }
  const go = (page: Page, hash: string) => page.evaluate((value) => (location.hash = value), hash);
  const link = (page: Page, name: string) => page.getByRole("link", { name, exact: true });

  test.each([
    { language: "en", theme: "light", width: 1280 },
    { language: "ko", theme: "dark", width: 360 },
  ] as const)("a reader asks agents and changes none ($language $theme $width)", async (look) => {
    const page = await signedIn("reader", "#/agents", look);
    await link(page, "Handbook").waitFor();
    expect(await page.locator("a[href='#/agents/new']").count()).toBe(0);
    await expectAccessible(page);
    await picture(page, `roles-agents-${look.language}-${look.theme}-${look.width}`);
    await go(page, "#/agents/new");
    await link(page, "University").waitFor();
    await go(page, `#/agents/${agents.Handbook}/edit`);
    await page.locator("#agent-question").fill(LEAVE);
    await page.keyboard.press("Enter");
    await page.getByRole("article").getByText("26 days").first().waitFor();
    expect(await page.locator("main a[href$='/edit'], main button[aria-haspopup=dialog]").count()).toBe(0);
    for (const part of ["manifest", "editions", "spending"]) {
      await go(page, `#/agents/${agents.Handbook}?part=${part}`);
      await page.locator("main pre, main table, main dl").first().waitFor();
    }
    await expectAccessible(page);
    await expectNoSideways(page);
    await close(page, SIGN_IN);
  });

  test("a reader reads the tree and its versions, and cases without their history", async () => {
    const page = await signedIn("reader", "#/taxonomy");
    await page.getByRole("treeitem", { name: /^Samples/ }).waitFor();
    await page.getByText("To change the tree, sign in").waitFor();
    expect(await page.getByRole("button", { name: /Rename|Split|Add at the top/ }).count()).toBe(0);
    await link(page, "Versions").click();
    await page.getByText("A secret plan").waitFor();
    await page.locator("main li a").first().click();
    await page.getByRole("heading", { name: "Changes" }).waitFor();
    expect(await page.getByRole("button", { name: "Activate" }).count()).toBe(0);

    await go(page, "#/cases");
    for (const { message } of QUESTIONS) await page.getByRole("link", { name: message }).waitFor();
    await page.getByRole("link", { name: LEAVE }).click();
    await page.getByText("26 days").first().waitFor();
    expect(await page.getByRole("button", { name: /Archive|Delete/ }).count()).toBe(0);
    expect(await page.getByRole("heading", { name: "History" }).count()).toBe(0);
    expect(await link(page, "Ask this question again").getAttribute("href")).toContain("#/ask?q=");
    await expectAccessible(page);
    await close(page, SIGN_IN);
  });

  test("what a reader may not do at all is not offered, and a link to it says which key it needs", async () => {
    const page = await signedIn("reader", "#/agents");
    await link(page, "Handbook").waitFor();
    for (const view of ["review", "evaluation", "keys", "audit"])
      expect(await page.locator(`nav a[href='#/${view}']`).count()).toBe(0);
    const asked: string[] = [];
    page.on("response", (response) => response.status() === 403 && asked.push(response.url()));
    for (const view of ["review", "evaluation", "keys", "audit"]) {
      await go(page, `#/${view}`);
      await page.getByText("Your key does not allow this").waitFor();
      expect(await page.locator("main button").allInnerTexts()).toEqual(["Sign in with another key"]);
      await expectAccessible(page);
      await picture(page, `roles-${view}-en-light-1280`);
    }
    expect(asked).toEqual([]); // the page knows, and asks for nothing
    await page.keyboard.press("?");
    expect(await page.getByRole("dialog").innerText()).not.toMatch(/Go to (Keys|Audit|Review|Evaluation)/);
    await page.keyboard.press("Escape");
    await go(page, "#/documents");
    await page.getByText("Your key can read. An editor can add documents.").waitFor();
    expect(await page.locator("main input[type=file]").count()).toBe(0);
    await page.getByRole("link", { name: "Information Security" }).click();
    await page.getByRole("term").filter({ hasText: "Pages" }).waitFor();
    expect(await page.getByRole("button", { name: "Delete" }).count()).toBe(0);
    await close(page, SIGN_IN);
  });

  test("a reader of one branch sees its agents, cases and counts, and nothing of the other branch", async () => {
    const page = await signedIn("desk", "#/agents");
    await link(page, "Handbook").waitFor();
    const other = async () => /University|도서관|secret plan/.test(await page.locator("main").innerText());
    expect(await other()).toBe(false);
    await go(page, "#/taxonomy");
    await page.getByRole("treeitem", { name: /^Handbook/ }).waitFor();
    expect(await link(page, "Versions").count()).toBe(0);
    expect(await other()).toBe(false);
    await go(page, "#/cases");
    await page.getByRole("link", { name: LEAVE }).waitFor();
    await page.getByRole("heading", { name: "Cases by category" }).waitFor();
    expect(await page.getByRole("link", { name: password }).count()).toBe(0);
    expect(await other()).toBe(false);
    await expectAccessible(page);
    await picture(page, "roles-cases-desk-en-light-1280");
    await go(page, `#/cases?q=${encodeURIComponent(BOOKS)}`);
    await page
      .getByText(/No case is similar|annual leave/)
      .first()
      .waitFor();
    expect(await page.getByRole("link", { name: BOOKS }).count()).toBe(0);
    await go(page, `#/agents/${agents.University}`);
    await page.getByText("Not found").first().waitFor();
    await close(page, /401|404/);
  });
});
