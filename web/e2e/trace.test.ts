import { appendFile } from "node:fs/promises";
import { expect, test } from "vitest";
import {
  close,
  expectAccessible,
  expectNoSideways,
  inBrowser,
  nameOf,
  open,
  picture,
  service,
  type Look,
} from "./browser";
import { verified } from "./service";
import { expectFailure, FAILURES } from "./states";

const QUESTION = "How many days of paid annual leave does a full-time employee have?";

/** The id of the trace of a new answer; traces are written a moment after it. */
async function answered(): Promise<string> {
  const response = await fetch(`${service}/chat/run`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ message: QUESTION }),
  });
  const { metadata } = (await response.json()) as { metadata: { trace_id: string } };
  return metadata.trace_id;
}

function callAt(started: number, seconds: number) {
  const usage = { input_tokens: 900, output_tokens: 40, cost: 1.5, error: "", prompt: "", reply: "" };
  return { step: "debate", model: "test-model", seconds, ...usage, started };
}

/** What a service with a language model and stored texts answers: shape and names as in the reference. */
const DEBATED = {
  question: QUESTION,
  answer: "A full-time employee has 26 days. [1]",
  degraded: ["tools"],
  seconds: 2.3,
  steps: [
    { name: "intent", seconds: 0.001, budget: 0.1, outcome: "done", facts: {}, started: 0 },
    {
      name: "retrieve",
      seconds: 0.05,
      budget: 2,
      outcome: "done",
      facts: { lexical_candidates: 50, vector_candidates: 20, passages: 10 },
      started: 0.001,
    },
    { name: "tools_debate", seconds: 2.1, budget: 3, outcome: "done", facts: {}, started: 0.06 },
    { name: "compose", seconds: 0.02, budget: 3.5, outcome: "done", facts: {}, started: 2.17 },
    { name: "cite", seconds: 0.1, budget: 1, outcome: "done", facts: { citations: 1 }, started: 2.2 },
  ],
  calls: [
    {
      ...callAt(0.06, 0.7),
      prompt: "Passages:\n[1] <script>alert(1)</script>",
      reply: "26 days. [1]",
    },
    callAt(0.06, 0.8),
    callAt(0.87, 0.7),
    callAt(0.87, 0.6),
    callAt(1.6, 0.5),
  ],
  debate: {
    rounds: 2,
    llm_calls: 5,
    elapsed: 1.4,
    tokens: 2100,
    cost: 3,
    models: ["test-model"],
    notes: [],
    affirmative_answers: ["26 days. [1]", "26 days for full-time employees. [1]"],
    critical_answers: ["The passage says full-time only. [1]", "Agreed. [1]"],
    final_answer: "A full-time employee has **26 days**. [1]",
  },
};

const TWO_LOOKS: Required<Look>[] = [
  { language: "en", theme: "light", width: 1280 },
  { language: "ko", theme: "dark", width: 360 },
];

inBrowser("trace", () => {
  test.each(TWO_LOOKS.map((look) => [nameOf(look), look] as const))("with a debate, %s", async (name, look) => {
    const id = await answered();
    const page = await open("#/trace", look);
    await page.route(
      (url) => url.pathname === `/traces/${id}`,
      async (route) => {
        const stored = (await (await route.fetch()).json()) as object;
        await route.fulfill({ json: { ...stored, ...DEBATED } });
      },
    );
    await page.locator(`main li a[href$="${id}"]`).click();
    await page.locator("h4").first().waitFor();
    await page.locator("details summary").last().click();
    await page.getByText(/5 model calls, up to 2 at the same time|모델 호출 5번, 동시에 최대 2번/).waitFor();
    await expectAccessible(page);
    await expectNoSideways(page);
    await page
      .locator("h2", { hasText: /Steps|단계/ })
      .first()
      .evaluate((heading) => heading.scrollIntoView());
    await picture(page, `trace-one-${name}`);
    await page.locator("h4").first().scrollIntoViewIfNeeded();
    await picture(page, `trace-debate-${name}`);
    await close(page);
  });

  test.each(FAILURES)("when the service answers %s", async (kind) => {
    await expectFailure("trace", "#/trace", "/traces", kind);
  });

  test("a real trace: steps with their limits, passages before and after, its documents", async () => {
    const id = await answered();
    const page = await open(`#/trace/${id}`, { width: 320 });
    await page.getByText(/lexical and \d+ vector candidates → \d+ passage/).waitFor();
    expect(await page.getByText("No language model was called.").count()).toBe(1);
    expect(await page.locator("ol li").count()).toBeGreaterThanOrEqual(4);
    await page.getByRole("link", { name: "Leave and Holidays" }).first().click();
    await page.getByRole("heading", { level: 1, name: "Leave and Holidays" }).waitFor();
    await expectNoSideways(page);
    await close(page);
  });

  test.each(TWO_LOOKS.map((look) => [nameOf(look), look] as const))("given again and saved, %s", async (name, look) => {
    const id = await answered();
    const page = await open(`#/trace/${id}`, look);
    const question = page.locator("main input");
    const again = page.getByRole("button", { name: /Answer again as then|그때처럼 다시 답하기/ });
    await question.fill("How many days of leave do guests have?");
    await again.click();
    await page.getByText(/not the question of the trace|이 실행 기록의 질문이 아닙니다/).waitFor();
    await question.fill(QUESTION);
    await again.click();
    await page
      .locator("main")
      .getByText(/The answer is the same|답이 같습니다/)
      .waitFor();
    expect(await page.locator("main tbody tr").count()).toBe(5);
    await expectAccessible(page);
    await expectNoSideways(page);
    await page.locator("main table").scrollIntoViewIfNeeded();
    await picture(page, `trace-replay-${name}`);
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: /Save as a signed file|서명된 파일로 저장/ }).click();
    const file = await (await saved).path();
    const [, key = ""] =
      /--key (\w+)/.exec((await page.locator("code", { hasText: "dtrag verify" }).textContent()) ?? "") ?? [];
    await expectAccessible(page);
    await expectNoSideways(page);
    await verified(file, key);
    await appendFile(file, " ");
    await expect(verified(file, key)).rejects.toThrow("bytes were changed");
    await close(page, /status of 422/);
  });

  test("no traces yet, and none of a kind", async () => {
    const page = await open("");
    await page.route(
      (url) => url.pathname === "/traces",
      (route) => route.fulfill({ json: { traces: [] } }),
    );
    await page.evaluate(() => (location.hash = "#/trace"));
    await page.getByText("No traces yet").waitFor();
    await expectAccessible(page);
    await picture(page, "trace-empty-en-light-1280");
    await close(page);
  });
});
