/** Every view of the page over the service of filled.ts: where it is, when it is complete, and what is opened in it. */
import type { Page } from "playwright-core";
import { askLinked, leave, linkTo, library, waitForAnswer, zeppelin } from "./asking";
import { VEHICLES } from "./editions";
import type { Filled } from "./filled";

/** Of the PDF of the samples: a sentence in two lines. */
const PDF_QUOTE = [1693, 1798];

export interface ViewState {
  name: string;
  /** Its address; in some views the question is in the language of the page. */
  at: (filled: Filled, language: "en" | "ko") => string;
  /** Seen when everything is loaded. */
  ready: string;
  /** What is done there, when it is complete. */
  act?: (page: Page) => Promise<void>;
  /** Something is open above the view; Escape closes it. */
  dialog?: boolean;
}

const search = (query: Record<string, string>) => `#/search?${new URLSearchParams(query).toString()}`;
const regulation = (path: string) => encodeURI(`#/regulations${path}`);
const draft = [
  { op: "add", path: ["Samples", "New"] },
  { op: "rename", path: ["Samples", "University"], name: "Campus" },
  { op: "delete", path: ["Gone"] },
].map((operation) => ["op", JSON.stringify(operation)]);

/** In an order in which none of them changes what a later one shows. */
export const STATES: readonly ViewState[] = [
  { name: "trace", at: () => "#/trace", ready: "main li a" },
  { name: "trace-one", at: ({ ids }) => `#/trace/${ids.trace}`, ready: "main ol li", act: waitForTitles },
  { name: "conversations", at: () => "#/ask", ready: "main aside li", act: openConversations },
  { name: "options", at: () => "#/ask", ready: "form textarea", act: openOptions, dialog: true },
  { name: "ask", at: () => "#/ask", ready: "form textarea, main form ~ p" },
  { name: "ask-scope", at: () => "#/ask", ready: "form textarea", act: openScope, dialog: true },
  { name: "ask-linked", at: (_, language) => linkTo(library[language]), ready: "#ask-linked" },
  { name: "ask-answer", at: (_, language) => linkTo(library[language]), ready: "#ask-linked", act: openConfidence },
  { name: "ask-source", at: () => linkTo(leave), ready: "#ask-linked", act: openSource },
  {
    name: "ask-declined",
    at: (_, language) => linkTo(zeppelin[language]),
    ready: "#ask-linked",
    act: askAndWait,
  },
  { name: "search-empty", at: () => "#/search", ready: "search, [role=search]" },
  { name: "search", at: () => search({ q: "parental leave days" }), ready: "article table" },
  { name: "search-none", at: () => search({ q: "zzzqqq", mode: "strict", type: "text/csv" }), ready: "main details" },
  { name: "search-filters", at: () => search({ q: "leave" }), ready: "article table", act: openFilters, dialog: true },
  { name: "documents", at: () => "#/documents", ready: "main li a" },
  { name: "document", at: ({ ids }) => `#/documents/${ids.document}?quote=1479-1546&context=1417-1437`, ready: "mark" },
  {
    name: "document-original",
    at: ({ ids }) => `#/documents/${ids.original}?quote=${PDF_QUOTE.join("-")}`,
    ready: "mark",
    act: showOriginal,
  },
  { name: "document-who", at: ({ ids }) => `#/documents/${ids.document}?show=who`, ready: "main table" },
  { name: "document-passages", at: ({ ids }) => `#/documents/${ids.document}?show=passages`, ready: "main li a" },
  { name: "taxonomy", at: () => "#/taxonomy?at=Samples", ready: "[role=treeitem]" },
  {
    name: "taxonomy-draft",
    at: () => `#/taxonomy?${new URLSearchParams([...draft, ["at", "Samples/New"]]).toString()}`,
    ready: "main [role=alert]",
  },
  { name: "taxonomy-versions", at: () => "#/taxonomy/versions", ready: "main li a" },
  { name: "taxonomy-version", at: () => "#/taxonomy/versions/2.0.0", ready: "main table, main section li" },
  { name: "agents", at: () => "#/agents", ready: "main table a" },
  { name: "agent", at: ({ ids }) => `#/agents/${ids.agent}`, ready: "main form input" },
  { name: "agent-parts", at: ({ ids }) => `#/agents/${ids.agent}`, ready: "main form input", act: openParts },
  { name: "agent-edit", at: ({ ids }) => `#/agents/${ids.agent}/edit`, ready: "[role=treeitem]" },
  { name: "review", at: ({ ids }) => `#/review/${ids.answer}`, ready: "article section h3" },
  { name: "review-document", at: ({ ids }) => `#/review/${ids.classification}`, ready: "article section h3" },
  { name: "cases", at: () => "#/cases", ready: "main table a", act: openDetails },
  { name: "cases-similar", at: () => "#/cases?q=days+of+annual+leave", ready: "main table a" },
  { name: "case", at: ({ ids }) => `#/cases/${ids.case}`, ready: "article details", act: openDetails },
  { name: "regulations", at: () => "#/regulations", ready: "main li a, main table a" },
  { name: "regulation", at: () => regulation(`/${VEHICLES}`), ready: "main article" },
  { name: "regulation-article", at: () => regulation("/학칙?at=제12조"), ready: "main article", act: openArticle },
  { name: "regulation-editions", at: () => regulation(`/${VEHICLES}?part=editions`), ready: "main ins" },
  { name: "evaluation", at: () => "#/evaluation", ready: "main table a" },
  { name: "evaluation-run", at: ({ runs }) => `#/evaluation/${runs[0]}`, ready: "main li details", act: openQuestion },
  {
    name: "evaluation-compared",
    at: ({ runs: [later, earlier] }) => `#/evaluation/${later}?against=${earlier}`,
    ready: "main details",
  },
  { name: "keys", at: () => "#/keys", ready: "main table" },
  { name: "keys-new", at: () => "#/keys", ready: "main table", act: openNewKey, dialog: true },
  { name: "audit", at: () => "#/audit?action=POST+%2Fkeys", ready: "main table" },
  { name: "settings", at: () => "#/settings", ready: "main table" },
];

/** Waits until the state is shown and nothing is loading. */
export async function reach(page: Page, { ready, act }: ViewState): Promise<void> {
  await page.locator(ready).first().waitFor();
  await loaded(page);
  await act?.(page);
  await loaded(page);
}

async function loaded(page: Page): Promise<void> {
  await page.waitForFunction(
    () => !document.querySelector("main [role=status] .quiet, main [aria-busy=true], dialog [role=status] .quiet"),
  );
}

async function waitForTitles(page: Page) {
  await page.waitForFunction(() => !document.querySelector("main li a > code"));
}

async function openConversations(page: Page) {
  await page.locator("main aside li button").first().click();
  await page.locator("main aside li button").nth(3).waitFor();
}

async function openOptions(page: Page) {
  await page.locator("h1").first().click();
  await page.keyboard.press("?");
  await page.locator("dialog fieldset").first().waitFor();
}

async function openScope(page: Page) {
  await page.locator("form button[aria-haspopup=dialog]").click();
  await page.locator("[role=treeitem]").first().waitFor();
  await page.locator("dialog select").first().waitFor();
}

async function askAndWait(page: Page) {
  await askLinked(page);
  await waitForAnswer(page);
}

async function openConfidence(page: Page) {
  await askAndWait(page);
  await page.locator("article summary").first().click();
}

async function openSource(page: Page) {
  await askAndWait(page);
  await page.locator("article a[id^=source-]").last().click();
  await page.locator('mark[data-kinds~="quote"]').first().waitFor();
}

async function showOriginal(page: Page) {
  await page.getByRole("button", { name: /Show the page of the original|원본 쪽 보기/ }).focus();
  await page.keyboard.press("Enter");
  await page.locator("[data-mark=quote]").nth(1).waitFor(); // the quotation goes on in the next line
}

async function openFilters(page: Page) {
  await page.locator("h1").click();
  await page.keyboard.press("f");
  await page.locator("dialog [role=treeitem]").first().waitFor();
}

async function openArticle(page: Page) {
  await page.locator("main article:has([data-place=제12조]) > details > summary").click();
  await page.locator("main article dl").waitFor();
}

async function openQuestion(page: Page) {
  await page.locator("main li details summary").first().click();
}

/** Opens what is folded, once: the page is the same in every look. */
async function openDetails(page: Page) {
  const closed = page.locator("main details:not([open]) > summary");
  await closed.evaluateAll((summaries: HTMLElement[]) => summaries.forEach((summary) => summary.click()));
}

async function openParts(page: Page) {
  await openDetails(page);
  await page.locator("main details table").waitFor();
  await page.locator("main details pre >> visible=true").first().waitFor();
}

async function openNewKey(page: Page) {
  await page.locator("main button").first().click();
  await page.locator("dialog[open] [role=treeitem]").first().waitFor();
}
