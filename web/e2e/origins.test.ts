/**
 * What pages of other origins can do here in a real browser, with and without keys: the table of
 * docs/explanation/security.md. Every route and header, without a browser: tests/api/test_cors.py.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { afterAll, expect, inject, test } from "vitest";
import { inBrowser, openPage, service } from "./browser";
import { requests } from "./filled";
import { startService } from "./service";

/** One server has the pages of all other origins; the browser resolves their names to this machine. */
const site = createServer((request, response) => {
  if (request.headers.host?.startsWith("sandboxed"))
    response.setHeader("Content-Security-Policy", "sandbox allow-scripts");
  response.writeHead(200, { "Content-Type": "text/html" });
  response.end("<!doctype html><title>Another page</title><link rel=icon href=data:,>");
});
await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", () => resolve()));
const port = (site.address() as AddressInfo).port;
const NAMES = `MAP localhost:3000 127.0.0.1:${port}, MAP *.test 127.0.0.1`;

const pagesOf = (url: string) => ({
  own: url,
  listed: "http://localhost:3000", // by default
  "another port": `http://127.0.0.1:${port}`,
  "another site": `http://evil.test:${port}`,
  "no origin": `http://sandboxed.test:${port}`,
  "rebound name": url.replace("127.0.0.1", "rebound.test"),
});

/** What each page tries: read, search, make a key, upload by a form, include documents, include the widget. */
async function attempts(target: string, key: Record<string, string>): Promise<[string, boolean][]> {
  const json = { ...key, "Content-Type": "application/json" };
  const form = new FormData();
  form.append("files", new Blob([""]), "nothing.exe");
  const tried: [path: string, init: RequestInit][] = [
    ["/documents?limit=1", { headers: key }],
    ["/search", { method: "POST", headers: json, body: '{"query": "holiday"}' }],
    ["/keys", { method: "POST", headers: json, body: '{"name": "", "role": "admin"}' }], // its name is refused
    ["/documents", { method: "POST", mode: "no-cors", body: form }], // no text can be read of its file
    ["/documents?limit=2", { mode: "no-cors" }],
    ["/widget.js", { mode: "no-cors" }],
  ];
  const outcomes: [string, boolean][] = [];
  for (const [path, init] of tried) {
    // Without credentials, the browser prompts for none.
    const text = await fetch(target + path, { ...init, credentials: "omit" }).then(
      (response) => response.text(),
      () => "",
    );
    outcomes.push([`${init.method ?? "GET"} ${path}`, text !== ""]);
  }
  return outcomes;
}

/** The outcomes of each page: the status that the service gave, with + where the page could read the response. */
async function measured(url: string, secret = ""): Promise<Record<string, string>> {
  const rows: Record<string, string> = {};
  for (const [name, address] of Object.entries(pagesOf(url))) {
    const page = await openPage(address, {}, []);
    await page.waitForLoadState("networkidle");
    const debugged = await debug(page);
    const target = name === "rebound name" ? address : url;
    const call = `(${attempts.toString()})(${JSON.stringify(target)}, ${JSON.stringify(secret ? { "X-API-Key": secret } : {})})`;
    const outcomes = await page.evaluate<[string, boolean][]>(call);
    const statuses = await debugged.statuses();
    const cell = ([request, read]: [string, boolean]) => `${statuses.get(request) ?? "no"}${read ? "+" : ""}`;
    rows[name] = outcomes.map(cell).join(" ");
    await page.context().close();
  }
  return rows;
}

/** The statuses of responses by method and path, also of those that the browser keeps from the page. */
async function debug(page: Page): Promise<{ statuses: () => Promise<Map<string, number>> }> {
  const session = await page.context().newCDPSession(page);
  const requests = new Map<string, string>();
  const sent = new Set<string>();
  const statuses = new Map<string, number>();
  session.on("Network.requestWillBeSent", ({ requestId, request }) => {
    requests.set(requestId, `${request.method} ${request.url.replace(/^https?:\/\/[^/]+/, "")}`);
  });
  session.on("Network.requestWillBeSentExtraInfo", ({ requestId }) => sent.add(requestId));
  session.on("Network.responseReceivedExtraInfo", ({ requestId, statusCode }) => statuses.set(requestId, statusCode));
  await session.send("Network.enable");
  await session.send("Network.setCacheDisabled", { cacheDisabled: true });
  return {
    statuses: async () => {
      // The debugger reports after the page. What was sent before it listened is not of the attempts.
      await expect
        .poll(() => [...sent].every((id) => statuses.has(id) || !requests.has(id)), { timeout: 10_000 })
        .toBe(true);
      return new Map([...statuses].map(([id, status]) => [requests.get(id) ?? "", status]));
    },
  };
}

inBrowser(
  "pages of other origins",
  () => {
    afterAll(() => site.close());

    // "no": the browser asks first (a preflight), is refused, and does not send the request.
    test("without keys", async () => {
      expect(await measured(service)).toEqual({
        own: "200+ 200+ 422+ 422+ 200+ 200+",
        listed: "403+ 200+ 403+ 403 403 200",
        "another port": "403 no no 403 403 200",
        "another site": "403 no no 403 403 200",
        "no origin": "403 no no 403 403 200",
        "rebound name": "400+ 400+ 400+ 400+ 400+ 400+",
      });
    });

    test("with keys", { timeout: 180_000 }, async () => {
      const keyed = await startService(inject("samples"));
      const { secret } = await requests(keyed.url)<{ secret: string }>("/keys", { name: "kim", role: "admin" });
      const rebound = { "rebound name": "400+ 400+ 400+ 400+ 400+ 400+" };
      const foreign = (row: string) => ({ "another port": row, "another site": row, "no origin": row });
      expect(await measured(keyed.url), "without one").toEqual({
        own: "401+ 401+ 401+ 401+ 401+ 200+",
        listed: "401+ 401+ 401+ 401 401 200",
        ...foreign("401 no no 403 401 200"),
        ...rebound,
      });
      expect(await measured(keyed.url, secret), "with the key of an administrator").toEqual({
        own: "200+ 200+ 422+ 401+ 401+ 200+",
        listed: "200+ 200+ 422+ 401 401 200",
        ...foreign("no no no 403 401 200"),
        ...rebound,
      });
      await keyed.stop();
    });

    test("a link of another site leads to the page, not to documents", async () => {
      const links = [
        ["/", 200],
        ["/documents", 403],
      ] as const;
      for (const [path, status] of links) {
        const page = await openPage(pagesOf(service)["another site"], {}, []);
        const answered = page.waitForResponse(service + path);
        await page.evaluate((address) => (location.href = address), service + path);
        expect((await answered).status(), path).toBe(status);
        await page.context().close();
      }
    });

    test("the page does not open under a name that was rebound to this machine", async () => {
      const page = await openPage("about:blank", {}, []);
      const response = await page.goto(pagesOf(service)["rebound name"]);
      expect(response?.status()).toBe(400);
      expect(await page.locator("body").innerText()).toContain("The Host header is not a name of this service.");
      await page.context().close();
    });
  },
  [`--host-resolver-rules=${NAMES}`],
);
