/**
 * Script stored as a title, text, file name, agent, question and reason: the views show it as text, makes no
 * element of it and executes nothing. The name of a category cannot hold it. What a model or a tool returns is in failures.test.ts; cookies, tokens and roles of
 * every route are in tests/api/test_session_routes.py and test_sessions.py.
 */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { asked, waitForAnswer } from "./asking";
import { close, inBrowser, open, skipped } from "./browser";
import { requests, upload } from "./filled";
import { startService, type Service } from "./service";

const SCRIPT = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>';
/** For names without a slash. */
const SHORT = '<img src=x onerror="window.hit=1">';
/** Titles are one line of a file; the link is Markdown. */
const DOCUMENT = {
  id: "attack",
  title: `Xylophone ${SCRIPT}`,
  text: `The xylophone rule ${SCRIPT} [link](javascript:window.hit=1) lasts nine days.`,
};
let own: Service | undefined;
let ids: { document: string; agent: string; case: string };

beforeAll(async () => {
  if (skipped) return;
  own = await startService(inject("samples"), { CBR_ENABLED: "true", DTRAG_REVIEW_BELOW: "1" });
  const json = requests(own.url);
  await upload(json, `note ${SHORT}.md`, `# Xylophone\n\n${DOCUMENT.text}\n`, "Attacks");
  await upload(json, "attack.jsonl", JSON.stringify(DOCUMENT));
  await expect(upload(json, "other.md", DOCUMENT.text, SHORT)).rejects.toThrow("Unsafe characters");
  const { tree, version } = await json<{ tree: { path: string[] }[]; version: string }>("/taxonomy/active/tree");
  const branch = tree.find(({ path }) => path[0]?.startsWith("Attacks"))?.path;
  const agent = await json<{ agent_id: string }>("/agents/from-category", {
    name: `Agent ${SCRIPT}`,
    version,
    node_paths: [branch],
  });
  const message = `How many days does the xylophone rule last? ${SCRIPT}`;
  const { metadata } = await json<{ metadata: { trace_id: string } }>("/chat/run", { message });
  await json("/chat/feedback", { trace_id: metadata.trace_id, thumbs: "up", reason: SCRIPT });
  const { documents } = await json<{ documents: { document_id: string; title: string }[] }>("/documents");
  const { cases } = await json<{ cases: { case_id: string }[] }>("/cbr/cases");
  ids = {
    document: documents.find(({ title }) => title.includes("onerror"))?.document_id ?? "",
    agent: agent.agent_id,
    case: cases[0]?.case_id ?? "",
  };
});
afterAll(() => own?.stop());

/** What the page made of the script, after its text was shown. */
async function expectText(page: Page): Promise<void> {
  await page.getByText("onerror=").filter({ visible: true }).first().waitFor({ timeout: 15_000 });
  const made = await page.evaluate(() => ({
    hit: "hit" in window,
    elements: document.querySelectorAll("#app img, #app script, #app iframe, a[href^='javascript:' i]").length,
  }));
  expect(made).toEqual({ hit: false, elements: 0 });
}

inBrowser("stored script", () => {
  test("is text in the views that show it", async () => {
    const url = own?.url ?? "";
    const question = `How many days does the xylophone rule last? ${SCRIPT}`;
    const page = await open(asked(question), {}, url);
    await waitForAnswer(page);
    await expectText(page);
    await page.locator("article a[id^=source-]").first().click();
    await page.locator('mark[data-kinds~="quote"]').first().waitFor();
    await expectText(page);
    const views = [
      "#/search?q=xylophone",
      "#/documents",
      `#/documents/${ids.document}`,
      "#/agents",
      `#/agents/${ids.agent}`,
      "#/cases",
      `#/cases/${ids.case}`,
    ];
    for (const view of views) {
      await page.evaluate((hash) => (location.hash = hash), view);
      await page.locator("h1").first().waitFor();
      await expectText(page).catch((error: unknown) => {
        throw new Error(view, { cause: error });
      });
    }
    await close(page);
  });
});
