import { beforeEach, expect, test } from "vitest";
import { mount } from "../../test/setup";
import { TurnCard } from "./TurnCard";
import type { Answer, Source, Turn } from "./turn";

const source = (number: number): Source =>
  ({
    number,
    label: `Article ${number}`,
    title: "Statutes",
    quote: `Quotation ${number}.`,
    url: "",
    start: 0,
    end: 12,
    context: [],
    highlights: [],
    display: `Quotation ${number}.`,
    marked: [],
    document_id: `d${number}`,
    chunk_id: `d${number}:0`,
  }) as unknown as Source;

function answered(model: string, ...sources: Source[]): Turn {
  const metadata = { model, degraded: [], note_statements: [], reason_statements: [], tools: [], decision: "answer" };
  const answer = { sources, marked: [], metadata, confidence: 0.9, offered: [] };
  return {
    id: 1,
    question: "How long?",
    settings: { scope: [], agent: "", as_of: "", regulation: "" },
    state: "done",
    text: model ? "Two terms. [1]" : "Quotation 1. [1]",
    step: "",
    sources,
    answer: answer as unknown as Answer,
    traceId: "",
    vote: { thumbs: null, reason: "" },
    problem: null,
  };
}

const parts = (turn: Turn) => {
  const card = mount(<TurnCard turn={turn} last />);
  return {
    article: card.querySelector("section[aria-label^='Source 1']"),
    list: card.querySelectorAll("section ol li"),
  };
};

beforeEach(() => (location.hash = "#/ask"));

test("a quotation from one article is under the article's name, and no list repeats it", () => {
  const { article, list } = parts(answered("", source(1)));
  expect(article?.textContent).toContain("Article 1");
  expect(article?.textContent?.match(/Quotation 1\./g)).toHaveLength(1);
  expect(list).toHaveLength(0);
});

test("a sentence is shown marked in its whole passage, and no list repeats the sources in it", () => {
  const turn = answered("", source(1), source(2));
  const passage = { text: "First. Quotation 1. [1] Quotation 2. [2] Last.", marked: [[7, 19]] };
  const { article, list } = parts({ ...turn, answer: { ...turn.answer, passage } as Answer });
  expect(article?.textContent).toMatch(/First\. Quotation 1\..*Last\./);
  expect(article?.querySelector("strong")?.textContent).toBe("Quotation 1.");
  expect(article?.querySelectorAll("p a[id]")).toHaveLength(2);
  expect(list).toHaveLength(0);
});

test("a model's answer from one passage has this passage below it", () => {
  const { article, list } = parts(answered("test:model", source(1)));
  expect(article?.textContent).toContain("Quotation 1.");
  expect(article?.textContent).not.toContain("Two terms.");
  expect(list).toHaveLength(0);
});

test("several sources stay a list", () => {
  const { article, list } = parts(answered("", source(1), source(2)));
  expect(article).toBeNull();
  expect(list).toHaveLength(2);
});
