/** What the form of an agent holds, and the request that it makes. */
import type { Body } from "../../api/client";
import { pathKey, type Branch, type Selection } from "../../parts/branches";
import type { Agent } from "./state";

type NewAgent = Body<"post", "/agents/from-category">;
type Options = NonNullable<NewAgent["options"]>;

export const MOST_BRANCHES = 10;
/** Passages that a search looks at, by words and by meaning alike; "" is what the service does without a choice. */
export const DEPTHS = { quick: "6", usual: "", thorough: "30" } as const;
export type Depth = keyof typeof DEPTHS;
const USUAL = "12";
export const DEFAULT_THRESHOLD = 70;
const FIXED_FEATURES = ["debate", "hitl_below_conf", "cost_guard"];

/** Numbers are texts as in the form; "" is the default. */
export interface Draft {
  name: string;
  paths: Selection;
  lexical: string;
  vector: string;
  /** In percent. */
  threshold: string;
  tokens: string;
  won: string;
  /** Also the tools of MCP servers. */
  tools: readonly string[];
  debate: boolean;
  /** Switches of the organisation, which the form leaves as they are. */
  custom: Readonly<Record<string, boolean>>;
}

export const EMPTY: Draft = {
  name: "",
  paths: [],
  lexical: "",
  vector: "",
  threshold: "",
  tokens: "",
  won: "",
  tools: [],
  debate: false,
  custom: {},
};

/** The named depth of a draft; undefined for numbers of its own. */
export function depthOf({ lexical, vector }: Draft): Depth | undefined {
  const number = (text: string) => text || USUAL;
  const isDepth = (depth: Depth) => [lexical, vector].every((text) => number(text) === number(DEPTHS[depth]));
  return (Object.keys(DEPTHS) as Depth[]).find(isDepth);
}

/** The draft with the changes that the address holds; what is none of a draft is left out. */
export function withChanges(base: Draft, changes: string): Draft {
  let values: Partial<Record<keyof Draft, unknown>>;
  try {
    values = Object(JSON.parse(changes || "{}")) as typeof values;
  } catch {
    return base; // a link that someone shortened
  }
  const text = (name: "name" | "lexical" | "vector" | "threshold" | "tokens" | "won"): string => {
    const value = values[name];
    return typeof value === "string" ? value : base[name];
  };
  return {
    ...base,
    name: text("name"),
    lexical: text("lexical"),
    vector: text("vector"),
    threshold: text("threshold"),
    tokens: text("tokens"),
    won: text("won"),
    debate: typeof values.debate === "boolean" ? values.debate : base.debate,
    tools: isTexts(values.tools) ? values.tools : base.tools,
    paths: Array.isArray(values.paths) && values.paths.every(isTexts) ? values.paths : base.paths,
  };
}

/** What `draft` changes of `base`, for the address; "" for nothing. */
export function changesOf(draft: Draft, base: Draft): string {
  const changed = Object.entries(draft).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(base[name as keyof Draft]),
  );
  return changed.length ? JSON.stringify(Object.fromEntries(changed)) : "";
}

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === "string");

const folded = (path: readonly string[]): string =>
  pathKey(path.map((name) => name.normalize("NFKC").toLocaleLowerCase("und").trim()));

/** Finds a folded path of an agent as the tree spells it; undefined for a category that is gone. */
export function spelledBy(tree: readonly Branch[]): (path: readonly string[]) => readonly string[] | undefined {
  const spelled = new Map<string, readonly string[]>();
  const visit = (branch: Branch): void => {
    spelled.set(folded(branch.path), branch.path);
    branch.children.forEach(visit);
  };
  tree.forEach(visit);
  return (path) => spelled.get(folded(path));
}

/** The agent as a draft. Its paths are folded; the draft has them as the tree spells them. */
export function draftOf(agent: Agent, tree: readonly Branch[]): Draft {
  const { retrieval, features, budgets } = agent;
  const custom = Object.entries(features).filter(([name]) => !FIXED_FEATURES.includes(name));
  return {
    name: agent.name,
    paths: agent.allowed_category_paths.map(spelledBy(tree)).filter((path) => path !== undefined),
    lexical: String(retrieval.bm25_topk),
    vector: String(retrieval.vector_topk),
    threshold: String(Math.round(Number(features.hitl_below_conf) * 100)),
    tokens: budgets.tokens_per_day === null ? "" : String(budgets.tokens_per_day),
    won: budgets.krw_per_day === null ? "" : String(budgets.krw_per_day),
    tools: agent.mcp_tools_allowlist,
    debate: features.debate === true,
    custom: Object.fromEntries(custom) as Record<string, boolean>,
  };
}

const numberOf = (text: string): number | undefined => (text.trim() === "" ? undefined : Number(text));
/** Without the names that have no value, which JSON would leave out too. */
const filled = <T extends object>(value: T): T =>
  Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined)) as T;

function optionsOf(draft: Draft): Options {
  const threshold = numberOf(draft.threshold);
  return {
    mcp_tools: [...draft.tools] as Options["mcp_tools"],
    custom_features: { ...draft.custom, debate: draft.debate },
    override_settings: {
      retrieval: filled({ bm25_topk: numberOf(draft.lexical), vector_topk: numberOf(draft.vector) }),
      features: filled({ hitl_below_conf: threshold === undefined ? undefined : threshold / 100 }),
    },
    budgets: filled({ tokens_per_day: numberOf(draft.tokens), krw_per_day: numberOf(draft.won) }),
  };
}

export function requestOf(draft: Draft, version: string): NewAgent {
  return {
    version,
    name: draft.name.trim() || null,
    node_paths: draft.paths.map((path) => [...path]),
    options: optionsOf(draft),
  };
}
