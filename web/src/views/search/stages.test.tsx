import { expect, test } from "vitest";
import { mount } from "../../test/setup";
import { foundByLexicon, missingWords, stagesOf, type Explanation, type Hit } from "./stages";
import { StageTable } from "./StageTable";

const explanation: Explanation = {
  bm25: 6.2,
  bm25_score: 0.456,
  cosine: 0.588,
  fused: 0.522,
  rerank: null,
  lexical_rank: 5,
  vector_rank: 3,
  fused_rank: 4,
  terms: ["leave", "days"],
  expansions: [],
  imagined: null,
  imagined_questions: [],
};
const hit: Hit = {
  chunk_id: "d:3",
  text: "leave",
  title: "Leave",
  source_url: "",
  taxonomy_path: [],
  bm25_score: 0.456,
  vector_score: 0.588,
  hybrid_score: 0.522,
  rerank_score: 0.61,
  metadata: {},
  breadcrumb: [],
  start: 0,
  end: 5,
  highlights: [],
  explanation,
};

test("each stage has its score and rank; the last one the move since fusion", () => {
  expect(stagesOf(hit, 1).map(({ name, rank, move }) => [name, rank, move])).toEqual([
    ["lexical", 5, null],
    ["vector", 3, null],
    ["fused", 4, null],
    ["rerank", 1, 3],
  ]);
});

test("a ranking of articles is shown when it changed the score, and an unknown rank gives no move", () => {
  const stages = stagesOf({ ...hit, hybrid_score: 0.7, explanation: { ...explanation, fused_rank: null } }, 2);
  expect(stages.map(({ name }) => name)).toContain("articles");
  expect(stages.at(-1)?.move).toBeNull();
  expect(stagesOf({ ...hit, explanation: null }, 1)).toEqual([]);
});

test("words of the query that the passage lacks", () => {
  expect(missingWords("Parental leave, days?", ["leave", "days"])).toEqual(["Parental"]);
  expect(missingWords("휴학 기간 휴학", ["휴학"])).toEqual(["기간"]);
});

test("a lexical rank without matched words comes from the lexicon", () => {
  expect(foundByLexicon({ ...explanation, terms: [] })).toBe(true);
  expect(foundByLexicon(explanation)).toBe(false);
  expect(foundByLexicon({ ...explanation, terms: [], bm25: 0, lexical_rank: null })).toBe(false);
});

test("the table says in words what the arrow shows", () => {
  const table = mount(<StageTable stages={stagesOf(hit, 1)} label="Stages" />);
  expect(table.textContent).toContain("3 places up since fusion");
  expect(table.textContent).toContain("0.456");
});
