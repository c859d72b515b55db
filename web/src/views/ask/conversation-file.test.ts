import { beforeEach, expect, test } from "vitest";
import { keepAnswer } from "./kept-answers";
import { asMarkdown } from "./conversation-file";
import type { Answer, Turn } from "./turn";

const AT = "2026-03-01T09:00:00Z";
const conversation = {
  conversation_id: "c1",
  title: "Leave\n# of absence",
  question: "How long?",
  turns: 2,
  created_at: AT,
  updated_at: AT,
};
const message = (question: string, answer: string, withheld = false) => ({
  number: 1,
  question,
  answer,
  withheld,
  trace_id: null,
  feedback: null,
  feedback_reason: "",
  created_at: AT,
});

beforeEach(() => sessionStorage.clear());

test("questions are headings, with the sources that this tab has; what is withheld says so", () => {
  const answer = { response: "Two.", marked: [], sources: [{ number: 1, label: "학칙 제12조", quote: "Two\nterms." }] };
  const turn = { question: "How long?", settings: { scope: [], agent: "", as_of: "" } };
  keepAnswer("c1", turn as unknown as Turn, answer as unknown as Answer);
  const text = asMarkdown({ conversation, messages: [message("How long?", "Two."), message("Why?\n# Me", "", true)] });
  expect(text.split("\n\n").filter((part) => !part.startsWith("*"))).toEqual([
    "# Leave # of absence",
    "## How long?",
    "Two.",
    "[1] 학칙 제12조: “Two terms.”",
    "## Why? # Me",
  ]);
  expect(text).toContain("*This answer rests on documents that you may no longer see.*");
});

test("a conversation without a name is called by its first question", () => {
  const text = asMarkdown({ conversation: { ...conversation, title: "" }, messages: [message("How long?", "Two.")] });
  expect(text).toMatch(/^# How long\?\n/);
  expect(text).not.toContain("[1]");
});
