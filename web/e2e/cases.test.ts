/** The case memory over a service of its own, in which answers become cases by a vote. */
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { close, expectAccessible, expectNoSideways, inBrowser, open, picture, skipped } from "./browser";
import { startService, type Service } from "./service";
import { expectFailure, FAILURES, REFUSED } from "./states";

const LEAVE = "How many days of paid annual leave does a full-time employee have?";
const QUESTIONS = [LEAVE, "도서관에서 학부생은 책을 몇 권까지 빌릴 수 있나요?"];
let own: Service | undefined;

interface Case {
  case_id: string;
  query: string;
  status: string;
}

const url = () => own?.url ?? "";

async function json<T>(path: string, body?: unknown): Promise<T> {
  const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const response = await fetch(`${url()}${path}`, { ...init, headers: { "Content-Type": "application/json" } });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

const cases = async () => (await json<{ cases: Case[] }>("/cbr/cases")).cases;

beforeAll(async () => {
  if (skipped) return;
  own = await startService(inject("samples"), { CBR_ENABLED: "true" });
  for (const message of QUESTIONS) {
    const answer = await json<{ trace_id?: string; metadata: { trace_id?: string } }>("/chat/run", { message });
    await json("/chat/feedback", { trace_id: answer.trace_id ?? answer.metadata.trace_id, thumbs: "up" });
  }
});
afterAll(() => own?.stop());

inBrowser("cases", () => {
  test.each(FAILURES)("when the service answers %s", async (kind) => {
    await expectFailure("cases", "#/cases", "/cbr/stats", kind);
  });

  test.each(["en", "ko"] as const)("where it is off, it says how to enable it (%s)", async (language) => {
    const page = await open("#/cases", { language, width: 320 });
    await page.getByText("CBR_ENABLED=true").waitFor();
    await expectAccessible(page);
    await expectNoSideways(page);
    await picture(page, `cases-off-${language}-light-320`);
    await close(page, REFUSED);
  });

  test("filters are in the address, and a list without a match offers to clear them", async () => {
    const page = await open("#/cases", {}, url());
    await page.locator("table a").first().waitFor();
    await page.getByLabel("Archived", { exact: true }).focus();
    await page.keyboard.press("Space");
    await page.getByText("No case matches the filters").waitFor();
    expect(page.url()).toContain("status=archived");
    await expectAccessible(page);
    await page.getByRole("button", { name: "Clear the filters" }).click();
    await page.locator("table a").first().waitFor();
    await close(page);
  });

  test("by keyboard alone at 320 px: find a case, archive and restore it, delete it", async () => {
    const page = await open("#/cases", { width: 320 }, url());
    await page.locator("table a").first().waitFor();
    await expectNoSideways(page);
    await page.keyboard.press("/");
    await page.keyboard.type("annual leave days");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: LEAVE }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 2, name: LEAVE }).waitFor();
    await page.getByText("26 days").first().waitFor();
    await expectNoSideways(page);
    const status = async () => (await cases()).find((entry) => entry.query === LEAVE)?.status;
    await page.getByRole("button", { name: "Archive", exact: true }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Restore", exact: true }).waitFor();
    expect(await status()).toBe("archived");
    await page.getByRole("button", { name: "Restore", exact: true }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Archive", exact: true }).waitFor();
    expect(await status()).toBe("active");
    await page.getByRole("button", { name: "Delete" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await expectAccessible(page);
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Case memory" }).waitFor();
    await expect.poll(status).toBeUndefined();
    await close(page);
  });
});
