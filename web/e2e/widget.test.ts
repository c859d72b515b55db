/** The widget on a page of another origin with a strict policy of its own, with a real public key. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { library, zeppelin } from "./asking";
import { expectAccessible, expectQuiet, inBrowser, openPage, picture, type Look } from "./browser";
import { startService, type Service } from "./service";

/** These tests start several commands. */
const PATIENT_MS = 180_000;
const REFUSED = /Failed to load resource|net::ERR|CORS policy/;

inBrowser("the widget", () => {
  let service: Service;
  let site: Server;
  let origin: string;
  let body: string;

  beforeAll(async () => {
    site = createServer((_, response) => {
      const policy = `default-src 'none'; script-src ${service.url}; connect-src ${service.url}; require-trusted-types-for 'script'; trusted-types 'none'`;
      response.writeHead(200, { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy });
      response.end(body);
    });
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
    origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
    service = await startService(inject("samples"));
  });
  afterAll(async () => {
    site.close();
    site.closeAllConnections();
    await service.stop();
  });

  /** The page of the other site, with a new key of a new agent for pages of `origin`. */
  async function embedded(look: Look = {}, { at = origin, rate = "60" } = {}) {
    const name = `site-${Math.random()}`;
    const agent = String((await service.dtrag("agents", "create", "--path", "Samples", "--name", name)).agent_id);
    const options = ["--role", "public", "--agent", agent, "--origin", origin, "--rate", rate];
    const key = String((await service.dtrag("keys", "create", "--name", name, ...options)).secret);
    const language = look.language ?? "en";
    body = `<!doctype html><html lang="${language}"><head><title>Library</title><meta name="viewport" content="width=device-width">
      <script src="${service.url}/widget.js" data-key="${key}" data-agent="${agent}" data-lang="${language}" async></script></head>
      <body><main><h1>Library</h1><p>Opening hours: 9 to 18.</p></main></body></html>`;
    const page = await openPage(at, look, [at, service.url]);
    return { page, key: name };
  }

  test.each([
    { language: "en", theme: "light", width: 1280 },
    { language: "ko", theme: "dark", width: 360 },
  ] as const)("is asked by keyboard, answers with sources, and declines: %o", { timeout: PATIENT_MS }, async (look) => {
    const { page } = await embedded(look);
    await page.locator("button.opener").focus();
    await page.keyboard.press("Enter");
    await page.keyboard.type(library[look.language]);
    await page.keyboard.press("Enter");
    await page.locator("button.mark").first().click();
    await page.locator("details[open] blockquote").waitFor();
    await picture(page, `widget-${look.language}-${look.theme}-${look.width}`);
    await expectAccessible(page);
    await page.locator("textarea").fill(zeppelin[look.language]);
    await page.keyboard.press("Enter");
    await page
      .getByText(/The documents do not answer|답을 찾지 못했습니다/)
      .last()
      .waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "hidden" });
    expect(await page.evaluate(() => document.activeElement?.shadowRoot?.activeElement?.className)).toBe("opener");
    expectQuiet(page);
    await page.context().close();
  });

  test("says that the page is not allowed, and how long to wait", { timeout: PATIENT_MS }, async () => {
    const foreign = await embedded({}, { at: origin.replace("127.0.0.1", "localhost") });
    await asks(foreign.page, "This page may not ask here.");
    const limited = await embedded({}, { rate: "1" });
    await asks(limited.page, "[1]");
    await asks(limited.page, "Ask again in");
    await expectAccessible(limited.page);
    for (const { page } of [foreign, limited]) {
      expectQuiet(page, REFUSED);
      await page.context().close();
    }
  });

  test("says that the key is revoked, and that the service is gone", { timeout: PATIENT_MS }, async () => {
    const { page, key } = await embedded();
    await service.dtrag("keys", "revoke", key);
    await asks(page, "This site may no longer ask here.");
    await service.end();
    await asks(page, "The service cannot be reached.");
    await picture(page, "widget-unreachable");
    await expectAccessible(page);
    await service.begin();
    expectQuiet(page, REFUSED);
    await page.context().close();
  });

  async function asks(page: Awaited<ReturnType<typeof openPage>>, expected: string) {
    if (!(await page.locator("dialog").isVisible())) await page.locator("button.opener").click();
    await page.locator("textarea").fill(library.en);
    await page.keyboard.press("Enter");
    await page.locator(".log").getByText(expected).last().waitFor();
  }
});
