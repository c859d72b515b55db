/** What a reader, an editor and an editor of one branch see and may do: no offer that the service refuses. */
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
const OTHERS = "search documents taxonomy agents review cases evaluation trace keys audit settings".split(" ");
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
    const keys = {
      reader: [],
      nurse: ["--scope", HANDBOOK.join("/")],
      editor: ["--role", "editor"],
      desk: ["--role", "editor", "--scope", HANDBOOK.join("/")],
    };
    for (const [name, rights] of Object.entries(keys))
      secrets[name] = String((await keyed.dtrag("keys", "create", "--name", name, ...rights)).secret);
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
  const viewsOf = (page: Page) =>
    page
      .locator("header nav a, dialog nav a")
      .evaluateAll((links) => [...new Set(links.map((item) => item.getAttribute("href")))]);
  const link = (page: Page, name: string) => page.getByRole("link", { name, exact: true });

  test.each([
    { language: "en", theme: "light", width: 1280 },
    { language: "ko", theme: "dark", width: 360 },
  ] as const)(
    "a reader asks and reads regulations; another address explains itself ($language $theme $width)",
    async (look) => {
      const page = await signedIn("reader", "#/regulations", look);
      await link(page, "학칙").waitFor();
      expect(await viewsOf(page)).toEqual(["#/ask", "#/regulations"]);
      const asked: string[] = [];
      page.on("request", (request) => asked.push(new URL(request.url()).pathname));
      for (const view of OTHERS) {
        await go(page, `#/${view}`);
        await page.locator("main [role=alert]").waitFor();
        expect(await page.locator("main a, main button").allInnerTexts()).toEqual(
          look.language === "en" ? ["Go to Ask", "Sign in with another key"] : ["질문 화면으로", "다른 키로 로그인"],
        );
      }
      for (const below of [`agents/${agents.Handbook}`, "trace/1", "taxonomy/versions", "cases/1"]) {
        await go(page, `#/${below}`);
        await page.locator("main [role=alert]").waitFor();
      }
      expect(asked.filter((path) => !path.startsWith("/assets/"))).toEqual([]); // the page knows, and asks for nothing
      await expectAccessible(page);
      await expectNoSideways(page);
      await picture(page, `roles-forbidden-${look.language}-${look.theme}-${look.width}`);
      await page.locator("body").press("g");
      await page.locator("body").press("d"); // no shortcut of this reader
      await page.keyboard.press("?");
      const keysOf = page.getByRole("dialog").locator("tr td");
      expect(await keysOf.allInnerTexts()).toEqual(
        look.language === "en"
          ? ["Show the shortcuts", "Go to Ask", "Go to Regulations"]
          : ["단축키 보기", "질문 화면으로", "규정 화면으로"],
      );
      await page.keyboard.press("Escape");
      await page.locator("main").getByRole("link").click();
      await page.locator("form textarea").fill(LEAVE);
      await page.keyboard.press("Enter");
      await page.getByRole("article").getByText("26 days").first().waitFor();
      expect(await page.locator("a[href^='#/trace']").count()).toBe(0);
      const isWide = look.width === 1280; // there the conversations are beside the answer
      if (!isWide) await page.getByRole("button", { name: /^(Conversations|대화)/ }).click();
      await page
        .getByRole(isWide ? "complementary" : "dialog")
        .getByRole("link")
        .first()
        .waitFor();
      await close(page, SIGN_IN);
    },
  );

  test("a source's document is read; what is around it is not offered", async () => {
    const page = await signedIn("reader", "#/ask");
    await page.locator("form textarea").fill(LEAVE);
    await page.keyboard.press("Enter");
    await page
      .getByRole("link", { name: /^Source 1:/ })
      .first()
      .click();
    await page.locator("a[href^='#/documents/']").first().click();
    await page.getByRole("term").filter({ hasText: "Category" }).waitFor();
    expect(await page.locator("a[href='#/documents'], a[href^='#/search']").count()).toBe(0);
    expect(await page.getByRole("button", { name: "Delete" }).count()).toBe(0);
    await expectAccessible(page);
    await close(page, SIGN_IN);
  });

  test("a reader without regulations is not offered them, nor anything that only leads to other views", async () => {
    const page = await signedIn("nurse", "#/ask");
    await page.locator("form textarea").waitFor();
    expect(await viewsOf(page)).toEqual(["#/ask"]);
    await go(page, "#/regulations");
    await page.getByText("There is no regulation that you may see").waitFor();
    await expectAccessible(page);
    await close(page, SIGN_IN);
  });

  test("an editor reads the tree and its versions, and cases without their history", async () => {
    const page = await signedIn("editor", "#/taxonomy");
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
    expect(await page.getByText("When it was suggested and voted on").count()).toBe(0);
    expect(await link(page, "Ask this question again").getAttribute("href")).toContain("#/ask?q=");
    await expectAccessible(page);
    await close(page, SIGN_IN);
  });

  test("what an editor may not do at all is not offered, and a link to it says who may", async () => {
    const page = await signedIn("editor", "#/agents");
    await link(page, "Handbook").waitFor();
    for (const view of ["evaluation", "keys", "audit"]) {
      expect(await page.locator(`nav a[href='#/${view}']`).count()).toBe(0);
      await go(page, `#/${view}`);
      await page.getByText("This view is for administrators of all categories").waitFor();
    }
    await close(page, SIGN_IN);
  });

  test("an editor of one branch sees its agents, cases and counts, and nothing of the other branch", async () => {
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
    await page.getByText("1 question is remembered with its answer.").waitFor();
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
