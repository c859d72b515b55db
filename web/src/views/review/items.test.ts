import { expect, test } from "vitest";
import {
  answerOf,
  canApprove,
  categoryOf,
  changedSince,
  following,
  hashesOf,
  neighbour,
  titleOf,
  type Item,
} from "./items";

const item = (id: string, kind: Item["kind"], proposal: Item["proposal"]): Item => ({
  item_id: id,
  kind,
  document_id: null,
  agent_id: null,
  title: `Title ${id}`,
  confidence: 0.2,
  proposal,
  status: "waiting",
  note: "",
  created_at: "2026-01-01T00:00:00+00:00",
  decided_at: null,
  decided_by: "",
});

test("an answer has its question and passages; what is not of that shape is left out", () => {
  const answer = item("a", "answer", {
    question: "How many?",
    text: "26. [1]",
    decision: "answer",
    reasons: ["Low."],
    reason_statements: [{ code: "review_below", text: "Low.", values: { limit: "0.5" } }, 7],
    feedback: ["It is 27."],
    passages: [{ chunk_id: "d:1", label: "Leave", text: "26 days.", cited: true, content_hash: "9f86" }, null],
    chosen: ["d:1"],
  });
  expect(titleOf(answer)).toBe("How many?");
  expect(answerOf(answer)).toEqual({
    question: "How many?",
    text: "26. [1]",
    decision: "answer",
    reasons: [{ code: "review_below", text: "Low.", values: { limit: "0.5" } }],
    feedback: ["It is 27."],
    asOf: "",
    passages: [{ id: "d:1", label: "Leave", text: "26 days.", cited: true, hash: "9f86" }],
    chosen: ["d:1"],
  });
});

test("a document can be approved only with a proposed category", () => {
  const proposed = item("b", "classification", {
    path: ["HR", "Leave"],
    reasons: [],
    alternatives: [{ path: ["IT"], confidence: 0.3 }, { path: [] }],
    disagreeing: true,
  });
  expect(categoryOf(proposed).alternatives).toEqual([{ path: ["IT"], confidence: 0.3 }]);
  expect(titleOf(proposed)).toBe("Title b");
  expect(canApprove(proposed)).toBe(true);
  expect(canApprove(item("c", "classification", { path: [] }))).toBe(false);
  expect(canApprove(item("d", "answer", {}))).toBe(true);
});

test("the neighbours of an item, and the one to open after its decision", () => {
  const items = ["1", "2", "3"].map((id) => item(id, "answer", {}));
  expect(neighbour(items, "1", 1)?.item_id).toBe("2");
  expect(neighbour(items, "3", 1)).toBeUndefined();
  expect(neighbour(items, undefined, 1)?.item_id).toBe("1");
  expect(following(items, "2")?.item_id).toBe("3");
  expect(following(items, "3")?.item_id).toBe("2");
  expect(following(items.slice(0, 1), "1")).toBeUndefined();
});

test("a passage counts as changed when its text is not the one that was shown first", () => {
  const passage = (id: string, hash: string) => ({ id, hash, label: "", text: "", cited: false });
  const first = new Map<string, string>();
  expect(changedSince(first, [passage("a", "1"), passage("b", "1")])).toEqual([]);
  expect(changedSince(first, [passage("b", "2"), passage("c", "1")])).toEqual(["b"]);
  expect(hashesOf([passage("a", "1"), passage("b", "2")], ["b", "gone"])).toEqual({ b: "2" });
});
