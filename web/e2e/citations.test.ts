/**
 * Citations of every kind of sample (HWPX, DOCX, PDF, HTML, Markdown) opened in the browser: the highlighted text equals
 * the quotation, each context span is marked, and the quotation is in view.
 *
 * CITATIONS=500 opens that many; by default a few of each kind.
 */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { close, inBrowser, open, service } from "./browser";

const WANTED = Number(process.env.CITATIONS ?? 40);
/** Questions in one conversation; the service stores the last 100. */
const TURNS = 40;
const KINDS = ["application/hwp+zip", "docx", "pdf", "html", "markdown"];
const DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

interface Source {
  number: number;
  document_id: string;
  quote: string;
  page: number | null;
  start: number;
  end: number;
  context: { text: string; start: number; end: number }[];
}
interface Answer {
  response: string;
  conversation_id: string;
  sources: Source[];
}
interface Document {
  document_id: string;
  content_type: string;
  text: string;
  taxonomy_path: string[];
}
interface Kept {
  conversation: string;
  question: string;
  settings: { scope: string[][]; agent: string; as_of: string };
  answer: Answer;
}

inBrowser("citations", () => {
  test(`${WANTED} citations are highlighted as they are quoted, in view`, { timeout: 1_200_000 }, async () => {
    const documents = await everyDocument();
    expect(new Set(documents.map(kindOf)).size).toBe(KINDS.length);
    const opened = new Map<string, number>();
    const wrong: string[] = [];
    let total = 0;
    for (const questions of conversations(documents)) {
      if (total >= WANTED) break;
      const kept = await answersTo(questions);
      const page = await open(`#/ask?c=${kept[0]?.conversation ?? ""}`, {}, service);
      // As if this tab had asked the questions: their sources are shown after a reload.
      await page.evaluate((answers) => sessionStorage.setItem("dtrag.answers", answers), JSON.stringify(kept));
      await page.reload();
      for (const [index, { answer }] of kept.entries())
        for (const source of answer.sources) {
          if (total >= WANTED) break;
          const fault = await faultOf(page, index + 1, source);
          if (fault) wrong.push(`${fault}: ${source.quote}`);
          const kind = kindOf(documents.find((document) => document.document_id === source.document_id));
          opened.set(kind, (opened.get(kind) ?? 0) + 1);
          total += 1;
        }
      await close(page);
    }
    console.log(`${total - wrong.length} of ${total} citations`, Object.fromEntries(opened));
    expect(wrong).toEqual([]);
    expect(total).toBe(WANTED);
    expect(opened.size).toBe(KINDS.length);
  });
});

const kindOf = (document?: Document): string =>
  document?.content_type === DOCX ? "docx" : (KINDS.find((kind) => document?.content_type.endsWith(kind)) ?? "unknown");

async function everyDocument(): Promise<Document[]> {
  const list = (await json("/documents?limit=100")) as { documents: { document_id: string }[] };
  return Promise.all(list.documents.map(({ document_id }) => json(`/documents/${document_id}`) as Promise<Document>));
}

/** Sentences of the documents as questions, every kind in each conversation. */
function conversations(documents: Document[]): [question: string, scope: string[]][][] {
  const byKind = KINDS.map((kind) =>
    documents
      .filter((document) => kindOf(document) === kind)
      .flatMap(({ text, taxonomy_path }) =>
        questionsIn(text).map((question): [string, string[]] => [question, taxonomy_path]),
      ),
  );
  const mixed: [string, string[]][] = [];
  for (let row = 0; byKind.some((questions) => row < questions.length); row += 1)
    for (const questions of byKind) {
      const question = questions[row];
      if (question) mixed.push(question);
    }
  return Array.from({ length: Math.ceil(mixed.length / TURNS) }, (_, at) => mixed.slice(at * TURNS, (at + 1) * TURNS));
}

function questionsIn(text: string): string[] {
  const sentences = text.split(/\n+|(?<=[.다])\s+/).map((sentence) => sentence.trim());
  return [...new Set(sentences.filter((sentence) => sentence.length >= 12 && sentence.length <= 300))];
}

async function answersTo(questions: [string, string[]][]): Promise<Kept[]> {
  const conversation = `e2e-${Math.random().toString(36).slice(2)}`;
  const kept: Kept[] = [];
  for (const [question, path] of questions) {
    const settings = { scope: [path], agent: "", as_of: "" };
    const body = { message: question, conversation_id: conversation, context: { taxonomy_paths: settings.scope } };
    kept.push({ conversation, question, settings, answer: (await json("/chat/run", body)) as Answer });
  }
  return kept;
}

async function json(path: string, body?: unknown): Promise<unknown> {
  const init = body
    ? { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }
    : {};
  const response = await fetch(service + path, init);
  if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
  return response.json();
}

/** Opens the source with a click on its mark; "" when everything is as it must be. */
async function faultOf(page: Page, turn: number, source: Source): Promise<string> {
  const mark = page.locator(`#source-${turn}-${source.number}`).first();
  await mark.click();
  const box = page.locator(`[data-source="${source.document_id} ${source.start} ${source.end}"]`);
  await box.waitFor();
  if (
    source.page !== null &&
    (await page.getByRole("complementary").getByText(`Page ${source.page}`, { exact: true }).count()) !== 1
  )
    return `page ${source.page} is not shown`;
  return box.evaluate((element, expected) => {
    const textOf = (kind: string) =>
      [...element.querySelectorAll(`mark[data-kinds~="${kind}"]`)].map((found) => found.textContent).join("");
    if (textOf("quote") !== expected.quote) return "another text is highlighted";
    const contexts = [...new Map(expected.context.map((span) => [span.start, span.text])).values()];
    if (contexts.some((context) => !textOf("context").includes(context))) return "a context is not marked";
    const first = element.querySelector('mark[data-kinds~="quote"]')?.getClientRects()[0];
    const at = first && document.elementFromPoint(first.left + 1, first.top + first.height / 2);
    return at?.closest('mark[data-kinds~="quote"]') ? "" : "the quotation is not in view";
  }, source);
}
