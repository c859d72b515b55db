/** Several items of the review queue decided together, over a service of its own. */
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { close, expectAccessible, expectNoSideways, inBrowser, open, picture, skipped } from "./browser";
import { requests, upload, type Json } from "./filled";
import { useShortcuts } from "./reviewing";
import { startService, type Service } from "./service";
import { REFUSED } from "./states";

const QUESTIONS = ["How many days of annual leave?", "Which dental insurance?", "When is payday?"];
let own: Service | undefined;

interface Item {
  item_id: string;
  title: string;
  status: string;
}

const url = () => own?.url ?? "";
const json: Json = (path, body) => requests(url())(path, body);

beforeAll(async () => {
  if (skipped) return;
  own = await startService(inject("samples"), { DTRAG_REVIEW_BELOW: "1" });
  for (const message of QUESTIONS) await json("/chat/run", { message });
});
afterAll(() => own?.stop());

inBrowser("review-many", () => {
  test("several documents are decided together; one that was decided elsewhere is said", async () => {
    for (const number of [1, 2, 3, 4]) {
      const row = { id: `${number}`, title: `Loose ${number}`, text: `Zzyzx${number} qwrtp.` };
      await upload(json, `loose-${number}.jsonl`, JSON.stringify(row));
    }
    const loose = (await json<{ items: Item[] }>("/review")).items.filter((item) => item.title.startsWith("Loose"));
    expect(loose.length).toBe(4);
    const page = await open("#/review", { width: 390 }, url());
    await page.getByRole("checkbox", { name: "Select Loose 1" }).click();
    for (const number of [2, 3]) await page.getByRole("checkbox", { name: `Select Loose ${number}` }).click();
    await page.getByText("3 selected").waitFor();
    await expectAccessible(page);
    await expectNoSideways(page);
    await picture(page, "review-many-en-light-390");
    await page.getByRole("button", { name: "Category…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("treeitem", { name: "Samples" }).click();
    await dialog.getByRole("button", { name: "Move to Samples" }).click();
    await dialog.getByRole("heading", { name: "Move 3 documents to Samples?" }).waitFor();
    await expectAccessible(page);
    await picture(page, "review-many-ask-en-light-390");
    const taken = loose.find((item) => item.title === "Loose 2");
    await json(`/review/${taken?.item_id}/skip`, {});
    await dialog.getByRole("button", { name: "Decide 3 now" }).click();
    await dialog.getByRole("heading", { name: "1 item was not decided" }).waitFor();
    await dialog.getByText("Loose 2: This item is decided already.").waitFor();
    await expectAccessible(page);
    await picture(page, "review-many-left-en-light-390");
    await dialog.getByRole("button", { name: "Close" }).last().click();
    await expect.poll(() => page.getByRole("checkbox", { name: /Select Loose/ }).count()).toBe(1);
    expect((await json<Item>(`/review/${taken?.item_id}`)).status).toBe("skipped");
    const first = loose.find((item) => item.title === "Loose 1");
    expect((await json<Item>(`/review/${first?.item_id}`)).status).toBe("corrected");
    await close(page, REFUSED);
  });

  test("the shift key and the list select several; the key t the one that is shown", async () => {
    const page = await open("#/review", {}, url());
    await useShortcuts(page, true);
    await page.getByRole("combobox", { name: "Select several…" }).selectOption({ label: "All answers (3)" });
    await page.getByText("3 selected").waitFor();
    await picture(page, "review-many-en-light-1280");
    await page.getByRole("button", { name: "Skip…" }).click();
    await page.getByRole("dialog").getByText("Decisions are final").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Clear" }).click();
    await page.locator("main").press("t");
    await page.getByText("1 selected").waitFor();
    const boxes = page.getByRole("checkbox", { name: /^Select / });
    await boxes.nth(0).click();
    await boxes.nth(0).click();
    await boxes.nth(2).click({ modifiers: ["Shift"] });
    await page.getByText("3 selected").waitFor();
    await close(page);
  });
});
