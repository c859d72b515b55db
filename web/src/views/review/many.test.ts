import { expect, test } from "vitest";
import { Problem } from "../../api/problem";
import type { Item } from "./items";
import { decideAll, fits, groupsOf } from "./many";

const item = (item_id: string, kind: Item["kind"], path: string[] = []): Item =>
  ({ item_id, kind, proposal: { path } }) as unknown as Item;

const items = [
  item("a", "classification", ["HR", "Leave"]),
  item("b", "classification", ["HR", "Leave"]),
  item("c", "classification", ["AI"]),
  item("d", "classification"),
  item("e", "answer"),
  item("f", "answer"),
];

test("groups are all of a kind, and documents with the same proposal", () => {
  expect(groupsOf(items)).toEqual([
    { kind: "classification", path: "", ids: ["a", "b", "c", "d"] },
    { kind: "answer", path: "", ids: ["e", "f"] },
    { kind: "classification", path: "HR › Leave", ids: ["a", "b"] },
  ]);
  expect(groupsOf(items.slice(2, 3))).toEqual([]);
});

test("a document without a proposal cannot be approved, an answer gets no category", () => {
  expect(items.filter((each) => fits("approve", each)).map((each) => each.item_id)).toEqual(["a", "b", "c", "e", "f"]);
  expect(items.filter((each) => fits("correct", each)).map((each) => each.item_id)).toEqual(["a", "b", "c", "d"]);
  expect(items.every((each) => fits("skip", each))).toBe(true);
});

test("what fails is returned with the reason, the others are decided, and it can be stopped", async () => {
  const sent: string[] = [];
  const decided: string[] = [];
  const taken = new Problem("conflict", "This item is decided already.");
  const undecided = await decideAll(
    items,
    ({ item_id }) => {
      sent.push(item_id);
      return item_id === "b" ? Promise.reject(taken) : Promise.resolve();
    },
    ({ item_id }) => decided.push(item_id),
    () => sent.length >= 4,
  );
  expect(sent).toEqual(["a", "b", "c", "d"]);
  expect(decided).toEqual(["a", "c", "d"]);
  expect(undecided.map((each) => [each.item.item_id, each.problem.kind])).toEqual([["b", "conflict"]]);
});
