import { expect, test } from "vitest";
import { documentsIn, type Branch } from "../../parts/branches";
import { route } from "../../state/router";
import { applied, operationFrom, readOperations, type Operation } from "./operations";
import { gradedInPublic } from "./grades";
import { sentenceOf } from "./sentences";
import { keywordsOf, splitFrom, tooManyKeywords } from "./split";
import * as state from "./state";

const { addOperation, address, draftOperations, keepOperations, selectedPath } = state;

const branch = (path: string[], documents: number, children: Branch[] = []): Branch => ({
  path,
  name: path.at(-1) ?? "",
  documents,
  children,
});
const tree = [
  branch(["AI"], 1, [branch(["AI", "ML"], 2), branch(["AI", "NLP"], 3)]),
  branch(["Law"], 4, [branch(["Law", "ml"], 5)]),
];
const outline = (branches: readonly Branch[]): string =>
  branches
    .map(({ name, documents, children }) => `${name}${documents}${children.length ? `(${outline(children)})` : ""}`)
    .join(" ");
const after = (...operations: Operation[]) => outline(applied(tree, operations).tree);
const misfit = (...operations: Operation[]) => applied(tree, operations).misfit?.error.kind;

test("each operation has the effect that the service describes", () => {
  expect(after({ op: "add", path: ["AI", "Vision"] })).toBe("AI1(ML2 NLP3 Vision0) Law4(ml5)");
  expect(after({ op: "rename", path: ["Law"], name: "Courts" })).toBe("AI1(ML2 NLP3) Courts4(ml5)");
  expect(after({ op: "move", path: ["AI", "NLP"], to: [] })).toBe("AI1(ML2) Law4(ml5) NLP3");
  expect(after({ op: "merge", paths: [["AI"]], into: ["Law"] })).toBe("Law5(ml7 NLP3)");
  expect(after({ op: "delete", path: ["AI", "ML"] })).toBe("AI3(NLP3) Law4(ml5)");
  expect(after({ op: "delete", path: ["AI"], to: ["Law"] })).toBe("Law10(ml5)");
  expect(after({ op: "split", path: ["Law", "ml"], into: [{ name: "A" }] })).toBe("AI1(ML2 NLP3) Law4(ml5(A0))");
});

test("later operations see the result of earlier ones, and the given tree stays as it is", () => {
  const operations: Operation[] = [
    { op: "rename", path: ["AI"], name: "Research" },
    { op: "move", path: ["Research", "ML"], to: ["Research", "NLP"] },
  ];
  expect(after(...operations)).toBe("Law4(ml5) Research1(NLP3(ML2))");
  expect(outline(tree)).toBe("AI1(ML2 NLP3) Law4(ml5)");
  expect(documentsIn(applied(tree, operations).tree[1] ?? branch([], 0))).toBe(6);
});

test("an operation that does not fit is named, and nothing after it is applied", () => {
  expect(misfit({ op: "add", path: ["ai"] })).toBe("exists");
  expect(misfit({ op: "add", path: ["ＡＩ"] })).toBe("exists");
  expect(misfit({ op: "rename", path: ["AI"], name: " " })).toBe("name");
  expect(misfit({ op: "move", path: ["AI", "ML"], to: ["Law"] })).toBe("exists");
  expect(misfit({ op: "move", path: ["AI"], to: ["AI", "ML"] })).toBe("inside");
  expect(misfit({ op: "merge", paths: [["AI"]], into: ["AI", "ML"] })).toBe("inside");
  expect(misfit({ op: "delete", path: ["Gone"] })).toBe("missing");
  const deep = ["AI", ..."2345678"].map((_, depth, names) => names.slice(0, depth + 1));
  expect(misfit(...deep.slice(1).map((path): Operation => ({ op: "add", path })))).toBeUndefined();
  const adds = [...deep.slice(1), [...(deep.at(-1) ?? []), "9"]].map((path): Operation => ({ op: "add", path }));
  expect(misfit(...adds)).toBe("deep");
  const draft = applied(tree, [
    { op: "delete", path: ["Gone"] },
    { op: "delete", path: ["AI"] },
  ]);
  expect(draft.misfit?.index).toBe(0);
  expect(outline(draft.tree)).toBe(outline(tree));
});

test("operations of stored versions are read without numbers of categories", () => {
  expect(operationFrom({ op: "add", path: ["A"], node_id: 7 })).toEqual({ op: "add", path: ["A"] });
  expect(operationFrom({ op: "split", path: ["A"], into: [{ name: "B", keywords: ["k"], node_id: 8 }] })).toEqual({
    op: "split",
    path: ["A"],
    into: [{ name: "B", keywords: ["k"] }],
  });
  expect(operationFrom({ op: "delete", path: ["A"], to: [] })).toEqual({ op: "delete", path: ["A"] });
  expect(readOperations(["{", '{"op":"burn","path":["A"]}', '{"op":"merge","paths":"A","into":["B"]}'])).toEqual([]);
});

test("the draft is in the address", () => {
  const operation: Operation = { op: "rename", path: ["A/B", "C"], name: "D & E" };
  addOperation(operation);
  addOperation({ op: "add", path: ["F"] });
  expect(route.value.query.getAll("op")).toHaveLength(2);
  expect(draftOperations()[0]).toEqual(operation);
  expect(selectedPath()).toEqual(["F"]);
  keepOperations(1);
  expect(draftOperations()).toEqual([operation]);
  address.set({ op: [], at: "" });
});

test("what was undone can be redone until another operation is added", () => {
  addOperation({ op: "add", path: ["A"] });
  addOperation({ op: "add", path: ["B"] });
  state.undoLast();
  state.undoLast();
  state.undoLast();
  expect(draftOperations()).toEqual([]);
  state.redoLast();
  expect(draftOperations()).toEqual([{ op: "add", path: ["A"] }]);
  expect(state.undoneOperations()).toEqual([{ op: "add", path: ["B"] }]);
  addOperation({ op: "add", path: ["C"] });
  state.redoLast();
  expect(draftOperations().map((operation) => operation.op === "add" && operation.path)).toEqual([["A"], ["C"]]);
  state.discard();
  expect(route.value.query.toString()).not.toContain("op=");
});

test("the form of a split gives its operation", () => {
  expect(keywordsOf(" contract, party，clause、 party\n")).toEqual(["contract", "party", "clause"]);
  expect(tooManyKeywords(Array.from({ length: 101 }, (_, n) => `w${n}`).join())).toBe(true);
  expect(tooManyKeywords("x".repeat(101))).toBe(true);
  const parts = [
    { id: 1, name: " Contracts ", keywords: "contract, party" },
    { id: 2, name: "", keywords: "" },
    { id: 3, name: "Courts", keywords: "" },
  ];
  const split = splitFrom(["Law"], parts, [{ document: "d-1", title: "Appeal", part: 3 }]);
  expect(split.into).toEqual([
    { name: "Contracts", keywords: ["contract", "party"] },
    { name: "Courts", documents: ["d-1"] },
  ]);
  expect(splitFrom(["Law"], [{ id: 1, name: "", keywords: "word" }], []).into).toEqual([
    { name: "", keywords: ["word"] },
  ]);
  expect(sentenceOf(split)).toBe("Split Law into Contracts (contract, party); Courts (1 picked document)");
});

test("the documents of a category of the draft are found where they are in the active tree", () => {
  const operations: Operation[] = [
    { op: "rename", path: ["AI"], name: "Research" },
    { op: "merge", paths: [["Law", "ml"]], into: ["Research", "ML"] },
    { op: "delete", path: ["Research", "NLP"] },
  ];
  const { origins } = applied(tree, operations);
  expect(origins.get("Research")).toEqual([["AI"], ["AI", "NLP"]]);
  expect(origins.get("Research/ML")).toEqual([
    ["AI", "ML"],
    ["Law", "ml"],
  ]);
});

test("an operation is one sentence", () => {
  expect(sentenceOf({ op: "move", path: ["AI", "ML"], to: [] })).toBe("Move AI › ML to the top of the tree");
  expect(sentenceOf({ op: "delete", path: ["AI", "ML"] })).toBe("Remove AI › ML; documents go to the parent");
  expect(sentenceOf({ op: "delete", path: ["AI"] })).toBe("Remove AI; documents go to no category");
});

test("a grade changes no category, and is read back from a link", () => {
  const graded: Operation = { op: "grade", path: ["AI", "ML"], grade: "S" };
  expect(after(graded)).toBe("AI1(ML2 NLP3) Law4(ml5)");
  expect(misfit({ op: "grade", path: ["Gone"], grade: "S" })).toBe("missing");
  expect(readOperations([JSON.stringify(graded)])).toEqual([graded]);
  expect(sentenceOf(graded)).toBe("Give AI › ML the grade S");
  expect(sentenceOf({ ...graded, grade: "" })).toBe("Take away the grade of AI › ML");
});

test("graded branches that are public are named once, with their grade", () => {
  const [ai, law] = tree.map((each) => ({ ...each, grade: each.name === "Law" ? "O" : "" }));
  const shown = [{ ...ai, children: ai?.children.map((each) => ({ ...each, grade: "S" })) ?? [] }, law] as Branch[];
  expect(gradedInPublic(shown, { names: ["O", "S"], open: ["AI", "Law", "Gone"] })).toEqual([
    "AI › ML (S)",
    "AI › NLP (S)",
  ]);
  expect(gradedInPublic(shown, { names: ["O", "S"], open: [] })).toEqual([]);
});
