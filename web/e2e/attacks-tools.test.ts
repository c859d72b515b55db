/** Script in what a tool and a language model return: text in the answer and in its trace, whose texts are stored. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { expectText, SCRIPT } from "./attack-text";
import { close, inBrowser, open, skipped } from "./browser";
import { requests } from "./filled";
import { startService, type Service } from "./service";

const QUESTION = "Search the web: how many days of paid annual leave does a full-time employee have?";
const LEAVE = "A full-time employee has 26 days of paid annual leave";
let own: Service | undefined;
let trace: string;

/** A search service (as SearXNG) and a language model (the OpenAI protocol), which answer with script. */
const remote = createServer((request, response) => {
  request.on("data", () => undefined).on("end", () => respond(request, response));
});

function respond(request: IncomingMessage, response: ServerResponse): void {
  response.setHeader("Content-Type", "application/json");
  if (request.url?.startsWith("/search")) {
    // The tool removes tags and then decodes references: what comes through is written with references.
    const script = SCRIPT.replaceAll("<", "&lt;").replaceAll(">", "&gt;");
    const results = [{ title: `Result ${script}`, url: "https://example.org/", content: `${LEAVE}. ${script}` }];
    response.end(JSON.stringify({ results }));
    return;
  }
  const choices = [{ index: 0, message: { role: "assistant", content: REPLY }, finish_reason: "stop" }];
  const usage = { prompt_tokens: 9, completion_tokens: 9, total_tokens: 18 };
  response.end(JSON.stringify({ id: "1", object: "chat.completion", created: 1, model: "test", choices, usage }));
}

const REPLY = `${LEAVE} in a calendar year. [1] ${SCRIPT} [1] [x](javascript:window.hit=1)`;

beforeAll(async () => {
  if (skipped) return;
  await new Promise<void>((resolve) => remote.listen(0, "127.0.0.1", resolve));
  const host = `127.0.0.1:${(remote.address() as AddressInfo).port}`;
  own = await startService(inject("samples"), {
    FEATURE_META_PLANNER: "true",
    FEATURE_MCP_TOOLS: "true",
    DTRAG_WEB_SEARCH_URL: `http://${host}`,
    DTRAG_EGRESS_ALLOW: host,
    DTRAG_LLM: "openai:test",
    DTRAG_LLM_BASE_URL: `http://${host}/v1`,
    DTRAG_TRACE_TEXT: "on",
  });
  interface Answer {
    metadata: { trace_id: string; tools: { tool: string; success: boolean }[] };
  }
  const { metadata } = await requests(own.url)<Answer>("/chat/run", { message: QUESTION });
  expect(metadata.tools).toMatchObject([{ tool: "web_search", success: true }]);
  trace = metadata.trace_id;
});
afterAll(async () => {
  await own?.stop();
  remote.close();
});

inBrowser("script from a tool and a model", () => {
  test("is text in the trace with the stored prompts and replies", async () => {
    const page = await open(`#/trace/${trace}`, {}, own?.url);
    const calls = page.locator("main details:has(pre)");
    await calls.first().waitFor();
    for (let at = 0; at < (await calls.count()); at += 1) await calls.nth(at).locator("summary").first().click();
    await page.locator("main pre", { hasText: "Result <img" }).first().waitFor();
    await expectText(page);
    await close(page);
  });
});
