/** Signing in with an identity provider of another site: the way there and back, and out of both. */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { close, expectAccessible, inBrowser, LOOKS, openPage, picture } from "./browser";
import { startService, type Service } from "./service";

const ROOT = join(import.meta.dirname, "../..");

inBrowser("signing in with a provider", () => {
  let provider: ChildProcess;
  let issuer: string;
  let folder: string;
  let service: Service;

  beforeAll(async () => {
    provider = spawn(join(ROOT, ".venv/bin/python"), ["-m", "tests.identity_provider", "kim", "staff"], { cwd: ROOT });
    issuer = await new Promise<string>((resolve) => {
      provider.stdout?.once("data", (line: Buffer) => resolve(line.toString().trim()));
    });
    folder = await mkdtemp(join(tmpdir(), "dtrag-sign-in-"));
    const file = join(folder, "sign-in.toml");
    await write(file, "http://127.0.0.1:1");
    service = await startService(inject("samples"), { DTRAG_SIGN_IN: file });
    await service.dtrag("keys", "create", "--name", "admin", "--role", "admin");
    await write(file, service.url);
    await service.end();
    await service.begin();
  });
  afterAll(async () => {
    await service.stop();
    provider.kill();
    await rm(folder, { recursive: true });
  });

  async function write(file: string, origin: string) {
    const secret = join(folder, "secret");
    await writeFile(secret, "a secret + of: the client", { mode: 0o600 });
    const lines = [
      `origin = "${origin}"`,
      "[[provider]]",
      'name = "university"',
      'title = "한빛대학교"',
      `issuer = "${issuer}"`,
      'client_id = "dtrag"',
      `client_secret_file = "${secret}"`,
      "[[provider.group]]",
      'name = "staff"',
      'branches = "all"',
    ];
    await writeFile(file, lines.join("\n"), { mode: 0o600 });
  }

  const opened = (at = "", look = {}) => openPage(`${service.url}/${at}`, look, [service.url, new URL(issuer).origin]);

  test("one click leads in, to the address of before, and signing out leads out of both", async () => {
    const page = await opened("#/documents?q=leave");
    await page.getByRole("link", { name: "Sign in with 한빛대학교" }).click();
    await page.getByText("university/kim").first().waitFor();
    expect(await page.evaluate(() => location.hash)).toBe("#/documents?q=leave");
    expect(await page.evaluate(() => document.cookie)).toBe("");
    await page.reload();
    await page.getByText("university/kim").first().waitFor();
    const left = page.waitForRequest((request) => request.url().startsWith(`${issuer}/logout`));
    await page.getByRole("button", { name: "Sign out" }).click();
    await left;
    await page.getByRole("link", { name: "Sign in with 한빛대학교" }).waitFor();
    await close(page, /Failed to load resource/);
  });

  test.each(LOOKS)("it looks right in $language, $theme, $width", async (look) => {
    const page = await opened("?sign-in=no-access", look);
    await page.getByRole("link").first().waitFor();
    await page.getByRole("alert").filter({ hasText: /./ }).waitFor();
    await expectAccessible(page);
    await picture(page, `sign-in-provider-${look.language}-${look.theme}-${look.width}`);
    await close(page, /Failed to load resource/);
  });
});
