/**
 * Script stored as a title, text, file name, agent, question, reason and note of a review: the views show it as text,
 * make no element of it and execute nothing. The name of a category cannot hold it. What a model or a tool returns is in
 * failures.test.ts and attacks-tools.test.ts; cookies and other origins are in attacks-session.test.ts; tokens and roles of
 * every route in tests/api/test_session_routes.py and test_sessions.py.
 */
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { openAsked, waitForAnswer } from "./asking";
import { expectText, SCRIPT } from "./attack-text";
import { close, inBrowser, skipped } from "./browser";
import { requests, upload } from "./filled";
import { startService, type Service } from "./service";

/** For names without a slash. */
const SHORT = '<img src=x onerror="window.hit=1">';
/** Titles are one line of a file; the link is Markdown. */
const DOCUMENT = {
  id: "attack",
  title: `Xylophone ${SCRIPT}`,
  text: `The xylophone rule ${SCRIPT} [link](javascript:window.hit=1) lasts nine days.`,
};
let own: Service | undefined;
/** An answer that waits for a person, and one that was skipped with the script as its note. */
let ids: { document: string; agent: string; case: string; waiting: string; skipped: string };
const QUESTION = `How many days does the xylophone rule last? ${SCRIPT}`;

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
  const message = QUESTION;
  const { metadata } = await json<{ metadata: { trace_id: string } }>("/chat/run", { message });
  await json("/chat/feedback", { trace_id: metadata.trace_id, thumbs: "up", reason: SCRIPT });
  // Of these two nothing is certain, so that they wait for a person.
  for (const unsure of ["Which dental insurance does the xylophone have?", "Who repairs the xylophone of visitors?"])
    await json("/chat/run", { message: `${unsure} ${SCRIPT}` });
  const { items } = await json<{ items: { item_id: string; kind: string }[] }>("/review");
  const [waiting = "", skippedItem = ""] = items.filter(({ kind }) => kind === "answer").map(({ item_id }) => item_id);
  await json(`/review/${skippedItem}/skip`, { note: `Note ${SCRIPT}` });
  const { documents } = await json<{ documents: { document_id: string; title: string }[] }>("/documents");
  const { cases } = await json<{ cases: { case_id: string }[] }>("/cbr/cases");
  ids = {
    document: documents.find(({ title }) => title.includes("onerror"))?.document_id ?? "",
    agent: agent.agent_id,
    case: cases[0]?.case_id ?? "",
    waiting,
    skipped: skippedItem,
  };
});
afterAll(() => own?.stop());

inBrowser("stored script", () => {
  test("is text in the views that show it", async () => {
    const url = own?.url ?? "";
    const page = await openAsked(QUESTION, {}, url);
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
      "#/review",
      `#/review/${ids.waiting}`,
      `#/review/${ids.skipped}`,
    ];
    for (const view of views) {
      await page.evaluate((hash) => (location.hash = hash), view);
      await page.locator("h1").first().waitFor();
      await expectText(page).catch((error: unknown) => {
        throw new Error(view, { cause: error });
      });
    }
    await page.getByText("Note <img").waitFor(); // of the skipped answer
    await close(page);
  });
});
