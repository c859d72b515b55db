/**
 * Attacks on the session in a real browser: requests from a page of another origin, and a cookie that was set before the
 * sign-in. More of them, without a browser: tests/api/test_sessions.py.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { close, inBrowser, open, skipped } from "./browser";
import { requests } from "./filled";
import { startService, type Service } from "./service";

const COOKIE = "dtrag_session";
const REFUSED = /40[13]/;
let own: Service | undefined;
let secret: string;
let reader: string;
const url = () => own?.url ?? "";

/** Another port of the same host: another origin, but the same site, so that the browser sends the cookie along. */
let other: Server;
const attacker = () => `http://127.0.0.1:${(other.address() as AddressInfo).port}`;

beforeAll(async () => {
  if (skipped) return;
  other = createServer((_, response) => {
    response.setHeader("Content-Type", "text/html");
    response.end("<!doctype html><title>Another origin</title><body>");
  });
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  own = await startService(inject("samples"));
  const create = (json: ReturnType<typeof requests>, name: string, role: string) =>
    json<{ secret: string }>("/keys", { name, role });
  secret = (await create(requests(url()), "kim", "admin")).secret;
  reader = (await create(requests(url(), secret), "mallory", "reader")).secret;
});
afterAll(async () => {
  await own?.stop();
  other.close();
});

async function signIn(page: Page, key: string, name: string): Promise<void> {
  await page.getByLabel("Key", { exact: true }).fill(key);
  await page.keyboard.press("Enter");
  await page.getByText(name, { exact: true }).first().waitFor();
}

const cookieOf = async (context: BrowserContext): Promise<string> =>
  (await context.cookies()).find(({ name }) => name === COOKIE)?.value ?? "";

const statusWith = async (cookie: string): Promise<number> =>
  (await fetch(`${url()}/session`, { headers: { cookie: `${COOKIE}=${cookie}` } })).status;

/** What a forged request would change. */
async function stored(): Promise<{ documents: string[] } & Record<string, unknown>> {
  const json = requests(url(), secret);
  const { keys } = await json<{ keys: { name: string }[] }>("/keys");
  const { documents } = await json<{ documents: { document_id: string }[] }>("/documents?limit=100");
  return {
    keys: keys.map(({ name }) => name),
    documents: documents.map(({ document_id }) => document_id),
    agents: await json("/agents"),
    versions: await json("/taxonomy"),
  };
}

/** Forms that another page can send without a script's help; the last becomes `{"name": "evil", …}` as text. */
const KEY = { name: "evil", role: "admin" };
const FORMS: [path: string, enctype: string, name: string, value: string][] = [
  ["/documents", "multipart/form-data", "files", "# Evil"],
  ["/documents", "application/x-www-form-urlencoded", "files", "# Evil"],
  ["/keys", "application/x-www-form-urlencoded", "name", "evil"],
  ["/keys", "text/plain", `${JSON.stringify(KEY).slice(0, -1)}, "agent_id": "`, `"}`],
  ["/session", "text/plain", `{"key": "`, `"}`],
];

inBrowser("a page of another origin", () => {
  test("can send forms with the cookie, and changes nothing", async () => {
    const page = await open("", {}, url());
    await signIn(page, secret, "kim");
    const token = await cookieOf(page.context());
    const before = await stored();
    const evil = await page.context().newPage();
    for (const [path, enctype, name, value] of FORMS) {
      await evil.goto(attacker());
      const sent = evil.waitForResponse((response) => response.url() === url() + path);
      await evil.evaluate(
        (fields) => {
          const form = Object.assign(document.createElement("form"), fields.form);
          form.append(Object.assign(document.createElement("input"), fields.input));
          document.body.append(form);
          form.submit();
        },
        { form: { action: url() + path, method: "post", enctype }, input: { name, value } },
      );
      const response = await sent;
      await evil.waitForURL(url() + path); // the browser shows the refusal
      // Otherwise the attack would have tested nothing.
      expect((await response.request().allHeaders()).cookie).toContain(token);
      expect([403, 415], `${path} ${enctype}`).toContain(response.status());
    }
    expect(await stored()).toEqual(before);
    await page.reload();
    await page.getByText("kim", { exact: true }).first().waitFor();
    expect(await cookieOf(page.context())).toBe(token);
    await close(page, REFUSED);
  });

  test("can neither read nor change anything with a script", async () => {
    const page = await open("", {}, url());
    await signIn(page, secret, "kim");
    const before = await stored();
    const evil = await page.context().newPage();
    await evil.goto(attacker());
    const [document] = before.documents;
    const read = await evil.evaluate(
      async ({ service, body, document }) => {
        const attempts: [path: string, init: RequestInit][] = [
          ["/documents", {}],
          ["/session", {}],
          ["/keys", { method: "POST", body, headers: { "Content-Type": "application/json" } }],
          ["/keys", { method: "POST", body, mode: "no-cors" }],
          ["/keys", { method: "POST", body, headers: { "X-CSRF-Token": "x" } }],
          ["/session", { method: "DELETE" }],
          [`/documents/${document}`, { method: "DELETE" }],
        ];
        const texts: string[] = [];
        for (const [path, init] of attempts)
          try {
            texts.push(await (await fetch(service + path, { ...init, credentials: "include" })).text());
          } catch {
            texts.push(""); // the browser refuses
          }
        return texts.join("");
      },
      { service: url(), body: JSON.stringify(KEY), document },
    );
    expect(read).toBe("");
    expect(await stored()).toEqual(before);
    await page.reload();
    await page.getByText("kim", { exact: true }).first().waitFor();
    await close(page, REFUSED);
  });
});

inBrowser("a cookie that was set before the sign-in", () => {
  test("is replaced, and opens nothing", async () => {
    const planted = "A".repeat(43);
    const page = await open("", {}, url());
    await page.context().addCookies([{ name: COOKIE, value: planted, url: url() }]);
    await page.reload();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await signIn(page, secret, "kim");
    const token = await cookieOf(page.context());
    expect(token).not.toBe(planted);
    expect(await statusWith(token)).toBe(200);
    expect(await statusWith(planted)).toBe(401);
    await close(page, REFUSED);
  });

  test("ends with its session when it is the attacker's own", async () => {
    const theirs = await open("", {}, url());
    await signIn(theirs, reader, "mallory");
    const planted = await cookieOf(theirs.context());
    const page = await open("", {}, url());
    await page.context().addCookies([{ name: COOKIE, value: planted, url: url(), httpOnly: true }]);
    await page.reload();
    await page.getByText("mallory", { exact: true }).first().waitFor(); // the page says whose session it is
    await page.getByRole("button", { name: "Sign out" }).click();
    await signIn(page, secret, "kim");
    const token = await cookieOf(page.context());
    expect(token).not.toBe(planted);
    expect(await statusWith(token)).toBe(200);
    expect(await statusWith(planted)).toBe(401);
    await close(page, REFUSED);
    await close(theirs, REFUSED);
  });
});
