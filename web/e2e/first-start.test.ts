/** From an empty data folder until a second person can ask, by nothing but what the page offers. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { waitForAnswer } from "./asking";
import {
  close,
  expectAccessible,
  expectNoSideways,
  inBrowser,
  LOOKS,
  nameOf,
  open,
  picture,
  skipped,
  type Look,
} from "./browser";
import { startService, type Service } from "./service";
import { enterOn, expectFocus, tabTo } from "./tabbing";

/** Before a key was given, the service says 401 once; while it has none, nothing is refused. */
const SIGN_IN = /401/;
const LEAVE = {
  name: "leave.md",
  mimeType: "text/markdown",
  buffer: Buffer.from("# Annual leave\n\nA full-time employee has 26 days of paid annual leave in a year.\n"),
};
let empty: string;
let own: Service | undefined;

beforeAll(async () => {
  if (skipped) return;
  empty = await mkdtemp(join(tmpdir(), "dtrag-empty-"));
  own = await startService(empty);
});
afterAll(async () => {
  await own?.stop();
  if (empty) await rm(empty, { recursive: true });
});

const guideOf = (page: Page) => page.getByRole("region", { name: "Set up in four steps" });
const stepOf = (page: Page, name: string) => guideOf(page).getByRole("listitem").filter({ hasText: name });
const toAsk = (page: Page) => page.getByRole("navigation").getByRole("link", { name: "Ask", exact: true }).click();

async function upload(page: Page, category: string): Promise<void> {
  await page.getByLabel("Category", { exact: true }).fill(category);
  const [chooser] = await Promise.all([
    page.waitForEvent("filechooser"),
    page.getByRole("button", { name: "Choose files" }).click(),
  ]);
  await chooser.setFiles(LEAVE);
  await page.getByText("1 of 1 file added").waitFor();
  await page.getByRole("button", { name: "Close", exact: true }).click();
}

/** The picture of the guide on a wide and a narrow page, without findings. */
async function look(page: Page, name: string): Promise<void> {
  for (const width of [1280, 320]) {
    await page.setViewportSize({ width, height: 900 });
    await guideOf(page).waitFor();
    await expectAccessible(page);
    await expectNoSideways(page);
    await picture(page, `first-start-${name}-${width}`);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
}

inBrowser("the first start", () => {
  test.each(LOOKS)("an empty service shows the steps: %o", async (given: Look) => {
    const page = await open("", given, own?.url);
    await page.locator("main ol li").first().waitFor();
    await expectAccessible(page);
    await expectNoSideways(page);
    await picture(page, `first-start-${nameOf(given as Required<Look>)}`);
    await close(page);
  });

  test("put away, it stays away in this browser", async () => {
    const page = await open("", {}, own?.url);
    await guideOf(page).getByRole("button", { name: "Hide this list" }).click();
    await page.getByText("There are no documents yet that you may see.").waitFor();
    await page.reload();
    await page.getByText("There are no documents yet that you may see.").waitFor();
    expect(await guideOf(page).count()).toBe(0);
    await close(page);
  });

  test("the guide leads from an empty folder to a second person who asks", async () => {
    const page = await open("", {}, own?.url);
    await guideOf(page).getByRole("link", { name: "Add documents" }).click();
    await upload(page, "");
    await toAsk(page);
    await stepOf(page, "Add documents").getByText("Done").waitFor();
    await stepOf(page, "Put them into categories").getByText("1 document has no category.").waitFor();
    await look(page, "no-category");

    await guideOf(page).getByRole("link", { name: "Add them again" }).click();
    await upload(page, "HR/Leave");
    await toAsk(page);
    await stepOf(page, "Put them into categories").getByText("Done").waitFor();
    await page.getByRole("textbox", { name: "Question" }).fill("Which dental insurance does the company offer?");
    await page.keyboard.press("Enter");
    await waitForAnswer(page);
    await page.getByRole("button", { name: "New question" }).click();
    await stepOf(page, "Ask a question").getByText("did not answer").waitFor();
    await look(page, "declined");

    // By keyboard from here on.
    await enterOn(page, "link", "What does “Annual leave” say?");
    await waitForAnswer(page);
    await enterOn(page, "button", "New question", true);
    await stepOf(page, "Ask a question").getByText("Done").waitFor();
    await look(page, "answered");
    await enterOn(page, "link", "Create a key");
    await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
    await createKey(page, "Kim");
    await page.keyboard.press("Enter"); // the button that signs in has the focus behind the copied secret
    await page.getByText("Kim", { exact: true }).first().waitFor();

    await enterOn(page, "link", "Ask", true);
    await stepOf(page, "Let others ask").getByText("Now create a key for the next person").waitFor();
    await look(page, "own-key");
    await enterOn(page, "link", "Create a key");
    const secret = await createKey(page, "Lee");
    await page.keyboard.press("Enter");
    await enterOn(page, "link", "Ask", true);
    await page.getByRole("region", { name: "For example" }).waitFor();
    expect(await guideOf(page).count()).toBe(0);
    await picture(page, "first-start-over-1280");
    await close(page);

    const second = await open("", {}, own?.url);
    await expectFocus(second, second.getByLabel("Key", { exact: true }));
    await second.keyboard.insertText(secret);
    await second.keyboard.press("Enter");
    await second.getByRole("link", { name: "What does “Annual leave” say?" }).click();
    await waitForAnswer(second);
    expect(await guideOf(second).count()).toBe(0);
    await second.getByText("26 days of paid annual leave").first().waitFor();
    await close(second, SIGN_IN);
  });
});

/** Creates a key with the form of the view, by keyboard; the focus is then on the button that closes it. */
async function createKey(page: Page, name: string): Promise<string> {
  await enterOn(page, "button", "New key");
  await tabTo(page, "textbox", "Name");
  await page.keyboard.type(name);
  await enterOn(page, "button", "Create the key");
  const secret = page.getByRole("dialog").locator("code");
  await secret.filter({ hasText: /^dtrag_/ }).waitFor();
  const text = await secret.innerText();
  await tabTo(page, "button", /I have stored it: sign in|Done/);
  return text;
}
