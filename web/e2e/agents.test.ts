/** Agents over the real service: created from branches, asked, changed and deleted. */
import { expect, test } from "vitest";
import { close, expectAccessible, expectNoSideways, inBrowser, nameOf, open, picture, service } from "./browser";
import { expectFailure, FAILURES, REFUSED } from "./states";

const LEAVE = "How many days of paid annual leave does a full-time employee have?";
const SHOWN = [
  { language: "en", theme: "light", width: 1280 },
  { language: "ko", theme: "dark", width: 360 },
] as const;

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

const folded = (manifest: Manifest) => ({
  ...manifest,
  allowed_category_paths: manifest.allowed_category_paths.map((path) => path.map((name) => name.toLowerCase())),
});

async function create(name: string): Promise<Agent> {
  const { tree, version } = await json<{ tree: { path: string[] }[]; version: string }>("/taxonomy/active/tree");
  return json<Agent>("/agents/from-category", { name, version, node_paths: [tree[0]?.path] });
}

const remove = (agent: Agent) => json(`/agents/${agent.agent_id}`, undefined, "DELETE");

inBrowser("agents", () => {
  test.each(SHOWN.map((look) => [nameOf(look), look] as const))("%s", async (name, look) => {
    const agent = await create(`looks ${name}`);
    const page = await open("#/agents", look);
    await page.getByRole("link", { name: agent.name }).waitFor();
    await expectAccessible(page);
    await expectNoSideways(page);
    await picture(page, `agents-list-${name}`);
    for (const part of ["manifest", "editions", "spending"]) {
      await page.goto(`${service}/#/agents/${agent.agent_id}?part=${part}`);
      await page.locator("main pre, main table, main dl").first().waitFor();
      await expectAccessible(page);
      await expectNoSideways(page);
    }
    await page.goto(`${service}/#/agents/${agent.agent_id}/edit`);
    await page.getByRole("treeitem").first().waitFor();
    await expectAccessible(page);
    await expectNoSideways(page);
    await picture(page, `agents-edit-${name}`);
    await close(page);
    await remove(agent);
  });

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
    const preview = JSON.parse(await page.locator("main pre").innerText()) as Manifest;
    expect(page.url()).toContain("branch=");
    await page.getByRole("button", { name: "Create the agent" }).press("Enter");
    await page.getByRole("heading", { level: 1, name: "By keyboard" }).waitFor();
    const id = /agents\/([^/?]+)/.exec(page.url())?.[1] ?? "";
    expect(await json<Manifest>(`/agents/${id}/manifest`)).toEqual(folded(preview));
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
});
