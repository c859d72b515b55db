/** The review queue over a service of its own, in which every answer waits for a person. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { close, expectAccessible, expectNoSideways, inBrowser, open, picture, skipped } from "./browser";
import { findAndPick, inView, useShortcuts } from "./reviewing";
import { startService, type Service } from "./service";
import { expectFailure, FAILURES } from "./states";

const QUESTIONS = [
  "How many days of paid annual leave does a full-time employee have?",
  "Which dental insurance does the company offer?",
  "도서관에서 학부생은 책을 몇 권까지 빌릴 수 있나요?",
];
const LEDGER = {
  id: "ledger",
  title: "Ledger of the annual leave",
  text: "The Ledger lists debits of leave and onions of employees and students.",
};
let own: Service | undefined;

interface Item {
  item_id: string;
  kind: string;
  status: string;
  note: string;
  decided_by: string;
  proposal: { question?: string; path?: string[]; chosen?: string[]; passages?: { chunk_id: string }[] };
}

const url = () => own?.url ?? "";

async function json<T>(path: string, init?: RequestInit): Promise<T> {
  const response = await fetch(`${url()}${path}`, init);
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

const waiting = async () => (await json<{ items: Item[] }>("/review")).items;
const read = (id: string) => json<Item>(`/review/${id}`);

async function itemOf(kind: string, question?: string): Promise<Item> {
  const item = (await waiting()).find(
    (candidate) => candidate.kind === kind && (!question || candidate.proposal.question === question),
  );
  if (!item) throw new Error(`No item: ${kind} ${question}`);
  return item;
}

const shown = (page: Page, title: string) => page.getByRole("heading", { level: 2, name: title }).waitFor();

beforeAll(async () => {
  if (skipped) return;
  own = await startService(inject("samples"), { DTRAG_REVIEW_BELOW: "1" });
  for (const message of QUESTIONS)
    await json("/chat/run", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ message }),
    });
  const form = new FormData();
  form.append("files", new Blob([JSON.stringify(LEDGER)]), "ledger.jsonl");
  await json("/documents", { method: "POST", body: form });
});
afterAll(() => own?.stop());

inBrowser("review", () => {
  test.each(FAILURES)("when the service answers %s", async (kind) => {
    await expectFailure("review", "#/review", "/review", kind);
  });

  test("when nothing waits, it says what would", async () => {
    const page = await open("", {}, url());
    await page.route("**/review?*", (route) => route.fulfill({ json: { items: [], total: 0, limit: 100, offset: 0 } }));
    await page.evaluate(() => (location.hash = "#/review"));
    await page.getByText("Nothing waits for a review").waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Check again" }).click();
    await close(page);
  });

  test("an item that was decided elsewhere shows that decision instead of a second one", async () => {
    const item = await itemOf("answer", QUESTIONS[1]);
    const page = await open(`#/review/${item.item_id}`, {}, url());
    await shown(page, QUESTIONS[1] ?? "");
    await json(`/review/${item.item_id}/skip`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ note: "seen" }),
    });
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByText(/Decided by/).waitFor();
    expect(await page.getByRole("button", { name: "Approve" }).count()).toBe(0);
    await expectAccessible(page);
    await close(page, /409/);
  });

  test("by keyboard alone at 320 px: walk, correct an answer by another passage, move a document, approve", async () => {
    const before = await waiting();
    const answer = await itemOf("answer", QUESTIONS[0]);
    const document = await itemOf("classification");
    const page = await open("#/review", { width: 320 }, url());
    await page.locator("ol a[href*='/review/']").first().waitFor();
    await expectNoSideways(page);
    for (const item of before) {
      await page.keyboard.press("j");
      await shown(page, item.proposal.question ?? LEDGER.title);
    }
    await page.keyboard.press("k");
    await shown(page, before.at(-2)?.proposal.question ?? LEDGER.title);
    await expectNoSideways(page);

    await page.goto(`${url()}/#/review/${answer.item_id}`);
    await shown(page, QUESTIONS[0] ?? "");
    await page.locator("article li input[type=checkbox]").nth(1).waitFor();
    await page.keyboard.press("c");
    await page.keyboard.press("Tab");
    const passages = (await read(answer.item_id)).proposal.passages?.map((passage) => passage.chunk_id) ?? [];
    const boxes = page.locator("article li input[type=checkbox]");
    await boxes.nth(0).focus();
    await page.keyboard.press("Space");
    await boxes.nth(1).focus();
    await page.keyboard.press("Space");
    await page.getByLabel("Note (optional)").focus();
    await page.keyboard.type("The other one.");
    await page.getByRole("button", { name: "Correct with 1 passage" }).focus();
    await page.keyboard.press("Enter");
    await page.getByText("Corrected.").waitFor({ state: "attached" });
    const corrected = await read(answer.item_id);
    expect(corrected).toMatchObject({ status: "corrected", note: "The other one." });
    expect(corrected.proposal.chosen).toEqual([passages[1]]);

    await page.goto(`${url()}/#/review/${document.item_id}`);
    await shown(page, LEDGER.title);
    await page.getByRole("button", { name: "Choose another category" }).waitFor();
    await page.locator("h1").click();
    await page.keyboard.press("c");
    await page.getByRole("dialog").getByRole("tree").waitFor();
    await expectAccessible(page);
    await picture(page, "review-category-en-light-320");
    await page.getByLabel("Search categories").focus();
    await page.keyboard.type("univ");
    await page.getByRole("treeitem", { name: "University" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Move to Samples › University" }).focus();
    await page.keyboard.press("Enter");
    await expect.poll(async () => (await read(document.item_id)).status).toBe("corrected");
    await shown(page, QUESTIONS[2] ?? "");
    await page.keyboard.press("a");
    await page.getByText("Nothing waits for a review").waitFor();
    expect(await waiting()).toEqual([]);
    await close(page);
  });

  test("a passage that the answer did not consider can be found and picked", async () => {
    const [item] = await retried();
    const page = await open(`#/review/${item?.item_id}`, {}, url());
    await page.getByText("Find other passages").click();
    await page.getByLabel("Words of the passage").fill("parental leave");
    await page.getByRole("search").getByRole("button", { name: "Search" }).click();
    const hits = page.locator("details li input[type=checkbox]");
    await hits.first().waitFor();
    await expectAccessible(page);
    await hits.first().click();
    await page.getByRole("button", { name: /^Correct with/ }).click();
    await page.getByText("Nothing waits for a review").waitFor();
    expect((await read(item?.item_id ?? "")).status).toBe("corrected");
    await close(page);
  });

  test("with shortcuts switched off a key does nothing; after each decision the next item has the focus", async () => {
    await skipAll();
    const questions = ["How many weeks of sick leave are there?", "Who approves a business trip?"];
    for (const message of questions) await chat(message);
    const items = await waiting();
    expect(items).toHaveLength(2);
    const [first = "", second = ""] = items.map((item) => item.proposal.question);
    const page = await open("#/review", {}, url());
    await shown(page, first);
    await useShortcuts(page, false);
    await page.keyboard.press("a");
    await page.keyboard.press("j");
    // Had a key worked, the button would skip the other item, or the first would be approved.
    await page.getByRole("button", { name: "Skip" }).press("Enter");
    const heading = page.getByRole("heading", { level: 2, name: second });
    await heading.and(page.locator(":focus")).waitFor();
    await page.getByRole("status").filter({ hasText: "Skipped." }).waitFor({ state: "attached" });
    expect((await read(items[0]?.item_id ?? "")).status).toBe("skipped");
    await useShortcuts(page, true);
    await page.keyboard.press("a");
    await page.getByText("Nothing waits for a review").waitFor();
    await page.locator("main:focus").waitFor();
    expect((await read(items[1]?.item_id ?? "")).status).toBe("approved");
    await expectAccessible(page);
    await close(page);
  });

  test("a passage that disappeared while the item was open is named, and the rest can be decided", async () => {
    await skipAll();
    const documentId = await ingestMemo("The canteen serves lentil soup on Tuesdays only.");
    await chat("Which warm meals like lentil soup does the canteen offer to visitors?");
    const item = await itemOf("answer");
    const page = await open(`#/review/${item.item_id}`, {}, url());
    const box = page.locator("article li", { hasText: "lentil soup" }).getByRole("checkbox");
    await box.check();
    await findAndPick(page, "parental leave");
    const correct = (n: string) => page.getByRole("button", { name: `Correct with ${n}` });
    await correct("2 passages").waitFor();
    await fetch(`${url()}/documents/${documentId}`, { method: "DELETE" });
    await correct("2 passages").click();
    await page.getByRole("alert").filter({ hasText: "or is gone" }).waitFor();
    await box.waitFor({ state: "detached" });
    await page.getByText("1 passage that you had picked does not exist any more").waitFor();
    await expectAccessible(page);
    await picture(page, "review-gone-en-light-1280");
    await correct("1 passage").click();
    await page.getByText("Nothing waits for a review").waitFor();
    expect((await read(item.item_id)).status).toBe("corrected");
    await close(page, /409/);
  });

  test.each(["a", "x"])(
    "a passage that was replaced while the item was open: %s decides after reading it",
    async (key) => {
      await skipAll();
      await ingestMemo("The canteen serves lentil soup on Tuesdays only.");
      await chat(`How often does the canteen serve lentil soup to visitors (${key})?`);
      const item = await itemOf("answer");
      const page = await open(`#/review/${item.item_id}`, {}, url());
      const passage = page.locator("article li", { hasText: "lentil soup" });
      await passage.waitFor();
      if (key === "x") {
        await passage.getByRole("checkbox").check();
        await findAndPick(page, "parental leave"); // another choice than what the answer cites
      }
      if (key === "a") await passage.getByText("Cited").waitFor();
      await ingestMemo("The canteen serves lentil soup on Fridays, too.");
      await page.keyboard.press(key);
      await page.getByRole("alert").filter({ hasText: "A passage has changed since you read it" }).waitFor();
      await page.getByText("Fridays").waitFor();
      await passage.getByText("Text has changed").waitFor();
      await inView(page, "[data-changed]");
      expect((await read(item.item_id)).status).toBe("waiting");
      await expectAccessible(page);
      await picture(page, `review-changed-${key}-en-light-1280`);
      await page.keyboard.press(key);
      await page.getByText("Nothing waits for a review").waitFor();
      expect((await read(item.item_id)).status).toBe(key === "a" ? "approved" : "corrected");
      await close(page, /409/);
    },
  );

  test("a focused passage is above the bar of the decisions", async () => {
    await skipAll();
    await chat("Which rules apply to students, employees and their leave?");
    const item = await itemOf("answer");
    const page = await open(`#/review/${item.item_id}`, {}, url());
    await page.locator("article li input[type=checkbox]").first().waitFor();
    for (const box of await page.locator("article li input[type=checkbox]").all()) {
      await box.focus();
      const { bottom, top } = await page.evaluate(() => ({
        bottom: document.activeElement?.closest("li")?.getBoundingClientRect().bottom ?? 0,
        top: document.querySelector("section[aria-label=Decision]")?.getBoundingClientRect().top ?? 0,
      }));
      expect(bottom).toBeLessThanOrEqual(top);
    }
    await close(page);
  });
});

/** One waiting answer after the others were decided. */
async function retried(): Promise<Item[]> {
  await chat("How many weeks of parental leave are there?");
  return waiting();
}

/** Adds or replaces a document with this text; gives its id. */
async function ingestMemo(text: string): Promise<string> {
  const form = new FormData();
  form.append("files", new Blob([JSON.stringify({ id: "memo", title: "Canteen memo", text })]), "memo.jsonl");
  form.append("category", "Samples/Handbook");
  const sent = { method: "POST", body: form };
  const { documents } = await json<{ documents: { document_id: string }[] }>("/documents", sent);
  return documents[0]?.document_id ?? "";
}

const chat = (message: string) =>
  json("/chat/run", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ message }),
  });

/** Nothing waits any more. */
async function skipAll(): Promise<void> {
  const headers = { "Content-Type": "application/json" };
  for (const item of await waiting())
    await json(`/review/${item.item_id}/skip`, { method: "POST", headers, body: "{}" });
}
