/** Agents over the real service: created from branches, asked, changed and deleted. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { close, expectAccessible, expectNoSideways, inBrowser, open, picture, service } from "./browser";
import { expectFailure, FAILURES, REFUSED } from "./states";

const LEAVE = "How many days of paid annual leave does a full-time employee have?";

interface Manifest {
  name: string;
  allowed_category_paths: string[][];
}
interface Agent extends Manifest {
  agent_id: string;
  edition: number;
}

async function json<T>(path: string, body?: unknown, method = body === undefined ? "GET" : "POST"): Promise<T> {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(`${service}${path}`, {
    method,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

async function create(name: string): Promise<Agent> {
  const { tree, version } = await json<{ tree: { path: string[] }[]; version: string }>("/taxonomy/active/tree");
  return json<Agent>("/agents/from-category", { name, version, node_paths: [tree[0]?.path] });
}

const remove = (agent: Agent) => json(`/agents/${agent.agent_id}`, undefined, "DELETE");

inBrowser("agents", () => {
  test.each(FAILURES)("when the service answers %s", async (kind) => {
    await expectFailure("agents", "#/agents", "/agents", kind);
  });

  test("by keyboard at 320 px: create from a branch, ask, change, delete", async () => {
    const page = await open("#/agents", { width: 320 });
    await page.getByRole("link", { name: "New agent" }).first().press("Enter");
    await page.getByLabel("Name", { exact: true }).fill("By keyboard");
    expect(await page.getByRole("button", { name: "Create the agent" }).isDisabled()).toBe(true);
    await page.getByRole("treeitem").first().focus();
    await page.keyboard.press("Space");
    await page.getByText(/^\d[\d,]* documents?, /).waitFor();
    await expectAccessible(page);
    await expectNoSideways(page);
    expect(page.url()).toContain("branch=");
    await page.getByRole("button", { name: "Create the agent" }).press("Enter");
    await page.getByRole("heading", { level: 1, name: "By keyboard" }).waitFor();
    const id = /agents\/([^/?]+)/.exec(page.url())?.[1] ?? "";
    expect(await json<Manifest>(`/agents/${id}/manifest`)).toMatchObject({
      allowed_category_paths: [["samples"]],
      retrieval: { bm25_topk: 12, vector_topk: 12 },
      features: { hitl_below_conf: 0.7 },
    });
    await page.getByRole("listitem").filter({ hasText: "It answers only from: Samples" }).waitFor();
    await page.getByLabel("Question to the agent").fill(LEAVE);
    await page.keyboard.press("Enter");
    await page.getByRole("article").getByText("26 days").first().waitFor();
    await page.getByRole("heading", { name: "Sources" }).waitFor();
    await expectAccessible(page);
    await expectNoSideways(page);
    await picture(page, "agents-answer-en-light-320");
    await page.getByRole("link", { name: "Change", exact: true }).press("Enter");
    await page.getByLabel("Name", { exact: true }).fill("Changed");
    await page.getByRole("button", { name: "Save as a new edition" }).press("Enter");
    await page.getByRole("heading", { level: 1, name: "Changed" }).waitFor();
    expect((await json<Agent>(`/agents/${id}`)).edition).toBe(2);
    await page.getByRole("button", { name: "Delete" }).press("Enter");
    await page.getByRole("dialog").waitFor();
    await expectAccessible(page);
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).press("Enter");
    await page.getByRole("heading", { level: 1, name: "Agents" }).waitFor();
    expect((await fetch(`${service}/agents/${id}`)).status).toBe(404);
    await close(page);
  });

  test("a change of an edition that is no longer current is refused, and the current one can be loaded", async () => {
    const agent = await create("conflict");
    const page = await open(`#/agents/${agent.agent_id}/edit`);
    await page.getByLabel("Name", { exact: true }).fill("Too late");
    const { version } = await json<{ version: string }>("/taxonomy/active/tree");
    const change = { version, name: "Earlier", node_paths: agent.allowed_category_paths };
    await json(`/agents/${agent.agent_id}`, change, "PUT");
    await page.getByRole("button", { name: "Save as a new edition" }).click();
    await page.getByRole("button", { name: "Load the current edition" }).click();
    await page.getByRole("heading", { level: 1, name: "Earlier" }).waitFor();
    await expect.poll(() => page.getByLabel("Name", { exact: true }).inputValue()).toBe("Earlier");
    await close(page, REFUSED);
    await remove(agent);
  });

  test("every field of a new agent and of a change is in the address: a reload keeps it", async () => {
    const page = await open("#/agents/new");
    await page.getByLabel("Name", { exact: true }).fill("Kept");
    await page.getByRole("treeitem").first().click();
    await page.getByLabel("Argue for and against an uncertain answer first").check();
    await page.getByRole("checkbox", { name: "Calculator" }).check();
    await page.getByRole("radio", { name: "Many (30)" }).check();
    await page.getByText("Own numbers").click();
    await page.getByLabel("Passages with words of the question").fill("7");
    expect(await page.getByRole("radio", { checked: true, name: /Few|Usual|Many/ }).count()).toBe(0);
    await page.reload();
    await page.getByRole("treeitem").first().waitFor();
    await expectAccessible(page);
    await picture(page, "agents-form-en-light-1280");
    await page.getByRole("button", { name: "Create the agent" }).click();
    await page.getByRole("heading", { level: 1, name: "Kept" }).waitFor();
    const id = /agents\/([^/?]+)/.exec(page.url())?.[1] ?? "";
    expect(await json<Manifest>(`/agents/${id}/manifest`)).toMatchObject({
      retrieval: { bm25_topk: 7, vector_topk: 30 },
      features: { debate: true },
      mcp_tools_allowlist: ["calculator"],
    });
    const sentences = page.getByRole("list").filter({ hasText: "It answers only from" });
    for (const sentence of [
      "up to 7 passages with words of the question and 30 close in meaning",
      "less than 70% sure",
      "It is argued for and against first.",
      "It may also use: Calculator.",
      `In chat programs it is the model agent:Kept.`,
      `/mcp/agents/${id}`,
    ])
      await sentences.getByText(sentence).waitFor();
    await page.goto(`${service}/#/agents/${id}/edit`);
    await page.getByLabel("Name", { exact: true }).fill("Kept too");
    await page.reload();
    await expect.poll(() => page.getByLabel("Name", { exact: true }).inputValue()).toBe("Kept too");
    const { version } = await json<{ version: string }>("/taxonomy/active/tree");
    const agent = await json<Agent>(`/agents/${id}`);
    await json(`/agents/${id}`, { version, name: "Earlier", node_paths: agent.allowed_category_paths }, "PUT");
    await page.reload();
    await page.getByRole("button", { name: "Save as a new edition" }).click();
    await page.getByRole("button", { name: "Load the current edition" }).click();
    await expect.poll(() => page.getByLabel("Name", { exact: true }).inputValue()).toBe("Earlier");
    expect(page.url()).not.toContain("changes=");
    await page.goto(`${service}/#/agents/${id}`);
    await page.locator("main summary", { hasText: "Manifest (JSON)" }).click();
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save as a file" }).click();
    expect((await download).suggestedFilename()).toBe("Earlier.json");
    await close(page, REFUSED);
    await remove(agent);
  });

  test("without agents, and in pages of a hundred", async () => {
    const page = await openWith(0, "#/agents");
    await page.getByText("No agents yet").first().waitFor();
    await expectAccessible(page);
    await picture(page, "agents-empty-en-light-1280");
    await close(page);
    const paged = await openWith(250, "#/agents");
    await paged.getByRole("link", { name: "Agent 1", exact: true }).waitFor();
    expect(await paged.locator("tbody tr").count()).toBe(100);
    await paged.getByRole("navigation", { name: "Pages" }).getByRole("link").last().click();
    await paged.getByRole("link", { name: "Agent 101", exact: true }).waitFor();
    await expectAccessible(paged);
    await paged.getByRole("navigation", { name: "Pages" }).getByRole("link").last().click();
    await paged.getByRole("link", { name: "Agent 250", exact: true }).waitFor();
    expect(await paged.locator("tbody tr").count()).toBe(50);
    await paged.goBack();
    await paged.getByRole("link", { name: "Agent 101", exact: true }).waitFor();
    await close(paged);
  });
});

/** A page whose list of agents has this many. */
async function openWith(total: number, at: string): Promise<Page> {
  const page = await open("");
  const model = await create("model");
  await remove(model);
  await page.route(
    (url) => url.pathname === "/agents",
    async (route) => {
      const query = new URL(route.request().url()).searchParams;
      const [offset, limit] = [Number(query.get("offset")), Number(query.get("limit"))];
      const numbers = Array.from({ length: total }, (_, index) => index + 1).slice(offset, offset + limit);
      const agents = numbers.map((number) => ({ ...model, agent_id: `a${number}`, name: `Agent ${number}` }));
      await route.fulfill({ json: { agents, total, limit, offset } });
    },
  );
  await page.evaluate((hash) => (location.hash = hash), at);
  return page;
}
