/** The evaluation, over runs that a service kept, and over runs that the browser answers with. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { close, expectAccessible, expectNoSideways, inBrowser, open, picture, type Look } from "./browser";
import { startService, type Service } from "./service";
import { expectFailure, FAILURES } from "./states";

const LEAVE = "How many days of paid annual leave does a full-time employee have?";
const BOOKS = "도서관에서 학부생은 책을 몇 권까지 빌릴 수 있나요?";
const LOOKS: Look[] = [
  { language: "en", theme: "light", width: 1280 },
  { language: "ko", theme: "dark", width: 320 },
];
const [OLD, NEW] = ["0b1f6f0e-0000-4000-8000-000000000001", "0b1f6f0e-0000-4000-8000-000000000002"];

const row = (id: string, question: string, right: number, answer: string) => ({
  id,
  question,
  ratios: { sufficient: [right, 1], "answer.wrong": [1 - right, 1], "unanswerable.declined": [0, 0] },
  details: { answer, decision: "answer", reasons: ["A reason."] },
});

function run(run_id: string, day: string, rows: ReturnType<typeof row>[]) {
  const right = rows.filter(({ ratios }) => ratios.sufficient[0] === 1).length / rows.length;
  const estimate = (value: number) => ({ value, low: value / 2, high: (1 + value) / 2 });
  return {
    run_id,
    created_at: `${day}T09:00:00+00:00`,
    kind: "answers",
    dataset: "samples",
    version: "1.0.0",
    settings: { mode: "hybrid", model: "none" },
    questions: rows.length,
    measures: { sufficient: estimate(right), "answer.wrong": estimate(1 - right), "unanswerable.declined": null },
    format: 1,
    risk_coverage: [
      { confidence: 0.9, coverage: 0.5, risk: 0 },
      { confidence: 0.4, coverage: 1, risk: 1 - right },
    ],
    rows,
  };
}

const RUNS = [
  run(NEW, "2026-11-02", [row("2", BOOKS, 1, "10권입니다."), row("1", LEAVE, 0, "Nine days.")]),
  run(OLD, "2026-11-01", [row("1", LEAVE, 1, "26 days."), row("2", BOOKS, 1, "10권입니다.")]),
];

/** A page whose requests for runs are answered with these. */
async function openWith(runs: typeof RUNS, at: string, look: Look = {}): Promise<Page> {
  const page = await open("", look);
  await page.route(
    (url) => url.pathname.startsWith("/evaluations"),
    async (route) => {
      const url = new URL(route.request().url());
      const id = url.pathname.split("/")[2];
      if (id) return route.fulfill({ json: runs.find(({ run_id }) => run_id === id) });
      const from = runs.findIndex(({ run_id }) => run_id === url.searchParams.get("after")) + 1;
      return route.fulfill({ json: { evaluations: runs.slice(from, from + Number(url.searchParams.get("limit"))) } });
    },
  );
  await page.evaluate((hash) => (location.hash = hash), at);
  return page;
}

async function check(page: Page, name: string, look: Look): Promise<void> {
  await expectAccessible(page);
  await expectNoSideways(page);
  await picture(page, `evaluation-${name}-${look.language}-${look.theme}-${look.width}`);
}

inBrowser("evaluation", () => {
  test.each(LOOKS.map((look) => [`${look.language} ${look.theme} ${look.width}`, look] as const))(
    "the list, a run and a comparison (%s)",
    async (_, look) => {
      const page = await openWith(RUNS, "#/evaluation", look);
      await page.locator("main svg[role=img]").first().waitFor();
      await page.locator("main table").waitFor();
      await check(page, "list", look);
      const plot = await page.locator("main svg[role=img]").first().getAttribute("aria-label");
      expect(plot).toMatch(/sufficient.*1\.000.*0\.500/s);
      await page.evaluate((id) => (location.hash = `#/evaluation/${id}`), NEW);
      await page.locator("main li details summary").first().waitFor();
      await page.locator("main select").nth(1).waitFor();
      const curve = page.getByRole("img", { name: /2 points|점 2개/ });
      expect(await curve.getAttribute("aria-label")).toMatch(/100%.*50%/s);
      await page.locator("main details summary").first().click();
      expect(await page.locator("main details tbody tr").count()).toBe(2);
      const worst = page.locator("main li details summary").first();
      expect(await worst.textContent()).toContain(LEAVE);
      await worst.click();
      await check(page, "run", look);
      await page.evaluate((hash) => (location.hash = hash), `#/evaluation/${NEW}?against=${OLD}`);
      await page.locator("main h4").first().waitFor({ state: "attached" });
      expect(await page.locator("main details").count()).toBe(1);
      await page.locator("main details summary").first().click();
      await page.getByText("26 days.").waitFor();
      await check(page, "comparison", look);
      await close(page);
    },
  );

  test.each(FAILURES)("when the service answers %s", async (kind) => {
    await expectFailure("evaluation", "#/evaluation", "/evaluations", kind);
  });

  test.each(["en", "ko"] as const)("without runs it says how to keep one (%s)", async (language) => {
    const look: Look = { language, theme: "light", width: 320 };
    const page = await openWith([], "#/evaluation", look);
    await page.getByText("dtrag eval answers DIR --keep").waitFor();
    await check(page, "empty", look);
    await close(page);
  });

  test("long lists have pages, which the address holds", async () => {
    const many = Array.from({ length: 60 }, (_, number) =>
      run(`0b1f6f0e-0000-4000-8000-0000000001${10 + number}`, "2026-11-01", [row("1", LEAVE, 1, "26 days.")]),
    );
    const page = await openWith(many, "#/evaluation");
    await page.locator("main tbody tr").first().waitFor();
    expect(await page.locator("main tbody tr").count()).toBe(50);
    await page.getByRole("link", { name: "Older runs" }).click();
    await page.getByRole("link", { name: "Newest runs" }).waitFor();
    expect(page.url()).toContain(`after=${many[49]?.run_id}`);
    await expect.poll(() => page.locator("main tbody tr").count()).toBe(10);
    await close(page);
  });

  test("by keyboard alone: filter the questions, open the worst, and ask it again", async () => {
    const page = await openWith(RUNS, `#/evaluation/${NEW}`);
    await page.getByLabel("Only those that fall short").focus();
    await page.keyboard.press("Space");
    await page.getByText("1 of 2 questions").waitFor();
    expect(page.url()).toContain("faults=1");
    await page.getByLabel("Words of the question").focus();
    await page.keyboard.type("nothing");
    await page.getByRole("button", { name: "Clear the filters" }).focus();
    await page.keyboard.press("Enter");
    await page.getByText("2 of 2 questions").waitFor();
    await page.locator("main li details summary").first().focus();
    await page.keyboard.press("Enter");
    await page.getByText("Nine days.").waitFor();
    const link = page.getByRole("link", { name: "Ask this question again" }).first();
    expect(await link.getAttribute("href")).toBe(`#/ask?${new URLSearchParams({ q: LEAVE }).toString()}`);
    await page.getByRole("link", { name: "All runs" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: /With the one before/ }).focus();
    await page.keyboard.press("Enter");
    await page.getByText("without bootstrap").waitFor();
    expect(page.url()).toContain(`against=${OLD}`);
    await close(page);
  });

  describe("over two runs of the command line", () => {
    const SOUP = "On which day does the canteen serve soup?";
    let own: Service;
    let folder: string;
    beforeAll(async () => {
      own = await startService(inject("samples"));
      folder = await mkdtemp(join(tmpdir(), "dtrag-set-"));
      const questions = [
        { id: "1", question: SOUP, answers: ["Tuesday"] },
        { id: "2", question: "How many days of leave do guests have?", answers: ["nine days"] },
      ];
      const lines = (rows: object[]) => rows.map((row) => JSON.stringify(row)).join("\n");
      await writeFile(join(folder, "questions.jsonl"), lines(questions));
      for (const day of ["Tuesday", "Monday"]) {
        const documents = [
          { id: "canteen", title: "Canteen", text: `The canteen serves soup on ${day}.` },
          { id: "leave", title: "Leave of guests", text: "Guests have nine days of leave." },
        ];
        await writeFile(join(folder, "corpus.jsonl"), lines(documents));
        await own.dtrag("eval", "answers", folder, "--keep");
      }
    });
    afterAll(async () => {
      await own.stop();
      await rm(folder, { recursive: true, force: true });
    });

    test("plots, a comparison, and the trace of the question that got worse", async () => {
      const page = await open("#/evaluation", {}, own.url);
      const plot = page.getByRole("img", { name: /^sufficient/ });
      expect(await plot.getAttribute("aria-label")).toMatch(/1\.000.*0\.500/s);
      await check(page, "real", { language: "en", theme: "light", width: 1280 });
      await page.getByRole("link", { name: /With the one before/ }).click();
      const worse = page.locator("main details", { hasText: SOUP });
      await worse.locator("summary").click();
      expect(await page.locator("main details").count()).toBe(1);
      await worse.getByText("on Tuesday.").waitFor();
      await worse.getByText("on Monday.").waitFor();
      await check(page, "real-comparison", { language: "en", theme: "light", width: 1280 });
      await worse.getByRole("button", { name: "Ask it now and open the trace" }).click();
      await page.getByRole("heading", { name: "Steps", exact: true }).waitFor();
      expect(page.url()).toContain("#/trace/");
      await close(page);
    });

    test("started from the page: a mistake is named, progress is shown, and the run is opened", async () => {
      const page = await open("#/evaluation", { language: "ko", width: 360 }, own.url);
      await page.getByText("평가 시작", { exact: true }).click();
      const pasted = page.locator("main textarea");
      await pasted.fill('{"id": "1"');
      await page.getByText("1번째 줄이 예와 같은 JSON 객체가 아닙니다.").waitFor();
      expect(await page.getByRole("button", { name: "시작", exact: true }).isDisabled()).toBe(true);
      await page.locator("input[type=file]").setInputFiles(join(folder, "questions.jsonl"));
      await page.getByText("질문 2개", { exact: true }).waitFor();
      expect(await page.getByLabel("세트 이름").inputValue()).toBe("questions");
      await check(page, "start", { language: "ko", theme: "light", width: 360 });
      await page.getByRole("button", { name: "시작", exact: true }).click();
      await page.getByRole("link", { name: "평가", exact: true }).last().click();
      await page.getByRole("heading", { name: "평가 실행" }).waitFor();
      await page.getByText("answers · questions").waitFor();
      await close(page);
    });
  });
});
