/** What the page shows when a request is refused or fails, and what comes from a hostile document or model. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { askLinked, library, linkTo } from "./asking";
import { close, expectAccessible, inBrowser, open, picture, service } from "./browser";

const REFUSALS: [status: number, type: string, title: string, button: string][] = [
  [403, "Forbidden", "Your key does not allow this", "Sign in with another key"],
  [404, "NotFound", "Not found", "Go back"],
  [429, "TooManyRequests", "Too many requests", "Try again"],
  [500, "InternalError", "This did not work", "Try again"],
  [503, "Overloaded", "Not available at the moment", "Try again"],
];
/** Where the page has its own words: the service's name routes of its API. */
const SENTENCES: Record<number, string> = {
  403: "or ask an administrator",
  404: "or the link is wrong",
};
const EXPECTED = /Failed to load resource|net::ERR/;

inBrowser("when something fails", () => {
  test.each(REFUSALS)("%i has its sentence and one thing to do", async (status, type, title, button) => {
    const page = await open("");
    const body = JSON.stringify({ detail: "One sentence of the service.", type, request_id: "r-1" });
    await page.route("**/chat/stream", (route) =>
      route.fulfill({ status, body, contentType: "application/json", headers: { "Retry-After": "7" } }),
    );
    await page.goto(`${service}/${linkTo(library.en)}`);
    await askLinked(page);
    await page.getByText(title).waitFor();
    await page.getByText(SENTENCES[status] ?? "One sentence of the service.").waitFor();
    await page.getByRole("button", { name: button }).waitFor();
    await expectAccessible(page);
    await picture(page, `state-${status}`);
    await close(page, EXPECTED);
  });

  test("a stream that breaks off is a failure that can be asked again", async () => {
    const page = await open("");
    await streams(page, [["token", { text: "Half an " }]]);
    await page.goto(`${service}/${linkTo(library.en)}`);
    await askLinked(page);
    await page.getByRole("button", { name: "Try again" }).waitFor();
    await close(page, EXPECTED);
  });

  test("offline is noticed and recovered from", async () => {
    const page = await open("");
    await page.context().setOffline(true);
    await page.getByText("You are offline.", { exact: false }).first().waitFor();
    await picture(page, "state-offline");
    await expectAccessible(page);
    await page.context().setOffline(false);
    await page.getByText("The service is back.").first().waitFor();
    // The guide of a new service may just have been loading.
    await close(page, /Failed to load resource|net::ERR|preload/);
  });

  test("text of documents and models is never HTML", async () => {
    const attack = '<img src=x onerror="document.title=1"><script>document.title=1</script>[x](javascript:alert(1))';
    const page = await open("");
    let asksDialog = false;
    page.on("dialog", () => (asksDialog = true));
    await streams(page, [["done", answer(attack, "toy")]]);
    await page.goto(`${service}/${linkTo(attack)}`);
    await askLinked(page);
    await page.getByText("Answered before", { exact: false }).waitFor();
    const seen = await page.locator("main").evaluate((main) => ({
      elements: main.querySelectorAll("img, script, iframe, a[href^=javascript]").length,
      text: main.textContent.split("onerror=").length - 1,
    }));
    expect(seen.elements).toBe(0);
    expect(seen.text).toBeGreaterThanOrEqual(4);
    await page.locator("article a[id^=source-]").first().hover();
    await page.locator("[role=tooltip]").waitFor();
    expect(await page.title()).toBe("Ask · dtrag");
    expect(asksDialog).toBe(false);
    await expectAccessible(page);
    await picture(page, "state-hostile");
    await close(page);
  });
});

async function streams(page: Page, events: [string, unknown][]): Promise<void> {
  const body = events.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join("");
  await page.route("**/chat/stream", (route) => route.fulfill({ body, contentType: "text/event-stream" }));
}

/** An answer of which every text is `text`. */
function answer(text: string, model: string | null) {
  const source = {
    number: 1,
    label: text,
    title: text,
    url: "javascript:alert(1)",
    date: "2026-01-01T00:00:00+00:00",
    version: text,
    document_id: "d",
    chunk_id: "d:0",
    quote: text,
    start: 0,
    end: 5,
    display: text,
    context: [],
    highlights: [],
  };
  const statement = { code: "", text, values: {} };
  return {
    response: `${text} [1]`,
    answer: `${text} [1]`,
    conversation_id: "c",
    sources: [source],
    confidence: 0.5,
    answered_before: { case_id: "1", question: text, date: "2026-01-01", votes: { up: 2, down: 1 } },
    metadata: {
      intent: "question",
      step_timings: {},
      taxonomy_version: "1.0.0",
      decision: "review",
      unfinished: false,
      reason: text,
      reason_statements: [statement],
      degraded: [text],
      notes: [text],
      note_statements: [statement],
      model,
      tokens: 1,
      cost: 0,
      latency: 0.1,
      trace_id: "t",
      baseline_confidence: 0.5,
      debated: true,
      tools: [{ tool: text, success: true, error: null, elapsed: 0.1 }],
      agent_id: null,
      hitl_required: true,
    },
  };
}
