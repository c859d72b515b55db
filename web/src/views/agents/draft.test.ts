import { expect, test } from "vitest";
import { changesOf, depthOf, draftOf, EMPTY, requestOf, withChanges } from "./draft";

const TREE = [
  { path: ["HR"], name: "HR", children: [{ path: ["HR", "Leave"], name: "Leave", children: [] }] },
  { path: ["학사"], name: "학사", children: [] },
];
const DRAFT = { ...EMPTY, name: " Desk ", paths: [["HR", "Leave"]] };
const AGENT = {
  name: "Desk",
  taxonomy_version: "1.0.0",
  retrieval: {
    bm25_topk: 12,
    vector_topk: 12,
    rerank: { candidates: 50, final_topk: 5 },
    filter: { canonical_in: true },
  },
  features: { debate: false, hitl_below_conf: 0.55, cost_guard: true, polite: true },
  mcp_tools_allowlist: ["searcher", "crm.find"],
  budgets: { tokens_per_day: null, krw_per_day: null },
  allowed_category_paths: [["hr", "leave"], ["gone"]],
  agent_id: "a1",
  edition: 3,
  unresolved_paths: ["gone"],
  created_by: "local",
  created_at: "2026-01-01T00:00:00Z",
  updated_at: "2026-01-01T00:00:00Z",
};

test("a draft without options sends no numbers, so that the service decides", () => {
  expect(requestOf(DRAFT, "1.2.0")).toEqual({
    version: "1.2.0",
    name: "Desk",
    node_paths: [["HR", "Leave"]],
    options: {
      mcp_tools: [],
      custom_features: { debate: false },
      override_settings: { retrieval: {}, features: {} },
      budgets: {},
    },
  });
});

test("a blank name is left to the service", () => {
  expect(requestOf({ ...DRAFT, name: "  " }, "1.0.0").name).toBeNull();
});

test("numbers are sent as numbers, the threshold as a share, and 0 is a budget", () => {
  const { options } = requestOf({ ...DRAFT, lexical: "20", threshold: "55", tokens: "0", won: "1.5" }, "1.0.0");
  expect(options?.override_settings).toEqual({ retrieval: { bm25_topk: 20 }, features: { hitl_below_conf: 0.55 } });
  expect(options?.budgets).toEqual({ tokens_per_day: 0, krw_per_day: 1.5 });
});

test("a change keeps every option, and the branches as the active tree spells them", () => {
  const draft = draftOf(AGENT, TREE);
  expect(draft.paths).toEqual([["HR", "Leave"]]);
  expect(requestOf(draft, "1.0.0").options).toEqual({
    mcp_tools: ["searcher", "crm.find"],
    custom_features: { polite: true, debate: false },
    override_settings: { retrieval: { bm25_topk: 12, vector_topk: 12 }, features: { hitl_below_conf: 0.55 } },
    budgets: {},
  });
});

test.each([
  ["", "", "usual"],
  ["12", "", "usual"],
  ["6", "6", "quick"],
  ["30", "30", "thorough"],
  ["6", "12", undefined],
  ["7", "7", undefined],
])("with %o by words and %o by meaning the depth is %o", (lexical, vector, depth) => {
  expect(depthOf({ ...DRAFT, lexical, vector })).toBe(depth);
});

test("the address holds the changes of a draft, and nothing else is read from it", () => {
  const base = draftOf(AGENT, TREE);
  expect(changesOf(base, base)).toBe("");
  const draft = { ...base, lexical: "", debate: true, tools: [], paths: [["학사"]] };
  expect(withChanges(base, changesOf(draft, base))).toEqual(draft);
  expect(withChanges(base, '{"name":7,"tools":"all","paths":[1],"custom":{"polite":false},"debate":"yes"}')).toEqual(
    base,
  );
  expect(withChanges(base, "{")).toEqual(base);
  expect(withChanges(base, "null")).toEqual(base);
});
