/** The address of the search explorer, and the request that it stands for. */
import { categories, integer, list, oneOf, queryState, text, type StateOf } from "../../state/query";
import type { components } from "../../api/schema";
import { CONTENT_TYPES, type ContentType } from "../../parts/file-kinds";

export const MODES = ["hybrid", "lexical", "strict", "vector"] as const;
export type Mode = (typeof MODES)[number];
export const MOST_HITS = 1000;
export const MOST_WHY = 20;
const DEFAULT_HITS = 10;
const DEFAULT_CANDIDATES = 100;

const shape = {
  q: text(),
  mode: oneOf(MODES, "hybrid"),
  k: integer(DEFAULT_HITS),
  scope: categories(),
  type: list(),
  from: text(),
  to: text(),
  /** `name=value` of a metadata field. */
  field: list(),
  min: text(),
  lexical: integer(DEFAULT_CANDIDATES),
  vector: integer(DEFAULT_CANDIDATES),
  as_of: text(),
  /** Documents whose absence is to be explained. */
  why: list(),
};
export const address = queryState(shape);
export type SearchState = StateOf<typeof shape>;

type SearchRequest = components["schemas"]["SearchRequest"];
type Filters = NonNullable<SearchRequest["filters"]>;

/** The request as short as possible: defaults are left out, so that a copied command shows what matters. */
export function requestOf(state: SearchState): Partial<SearchRequest> & { query: string } {
  const filters = filtersOf(state);
  return {
    query: state.q,
    ...(state.mode !== "hybrid" && { mode: state.mode }),
    top_k: within(state.k, 1, MOST_HITS),
    ...(filters && { filters }),
    ...(minimumOf(state) > 0 && { min_score: minimumOf(state) }),
    ...(state.lexical !== DEFAULT_CANDIDATES && { bm25_candidates: within(state.lexical, 1, MOST_HITS) }),
    ...(state.vector !== DEFAULT_CANDIDATES && { vector_candidates: within(state.vector, 1, MOST_HITS) }),
    ...(state.as_of && { as_of: state.as_of }),
    explain: true,
    ...(state.why.length > 0 && { explain_documents: state.why.slice(0, MOST_WHY) }),
  };
}

/** The same with every field, as the typed client wants it. */
export function fullRequest(state: SearchState): SearchRequest {
  return {
    mode: "hybrid",
    top_k: DEFAULT_HITS,
    min_score: 0,
    bm25_candidates: DEFAULT_CANDIDATES,
    vector_candidates: DEFAULT_CANDIDATES,
    highlights: true,
    explain: true,
    explain_documents: [],
    ...requestOf(state),
  };
}

function minimumOf(state: SearchState): number {
  const value = Number(state.min);
  return Number.isFinite(value) ? within(value, 0, 1) : 0;
}

const within = (value: number, least: number, most: number) => Math.min(most, Math.max(least, value));

function filtersOf(state: SearchState): Filters | null {
  const types = state.type.filter((type): type is ContentType => CONTENT_TYPES.some((known) => known === type));
  const fields = metadataOf(state.field);
  const filters: Filters = {
    ...(state.scope.length > 0 && { taxonomy_paths: state.scope }),
    ...(types.length > 0 && { content_types: types }),
    ...(state.from && { date_from: state.from }),
    ...(state.to && { date_to: state.to }),
    ...(fields && { metadata: fields }),
  };
  return Object.keys(filters).length > 0 ? filters : null;
}

export function metadataOf(fields: readonly string[]): Record<string, string> | null {
  const pairs = fields.flatMap((field) => {
    const at = field.indexOf("=");
    const name = field.slice(0, at).trim();
    return at > 0 && name ? [[name, field.slice(at + 1).trim()] as const] : [];
  });
  return pairs.length > 0 ? Object.fromEntries(pairs) : null;
}

/** How many filters are set. */
export function filterCount(state: SearchState): number {
  const advanced = [
    state.from,
    state.to,
    state.min,
    state.as_of,
    state.lexical !== DEFAULT_CANDIDATES,
    state.vector !== DEFAULT_CANDIDATES,
  ];
  return state.scope.length + state.type.length + state.field.length + advanced.filter(Boolean).length;
}

export const NO_FILTERS: Partial<SearchState> = {
  scope: [],
  type: [],
  field: [],
  from: "",
  to: "",
  min: "",
  as_of: "",
  lexical: DEFAULT_CANDIDATES,
  vector: DEFAULT_CANDIDATES,
};

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/i;

/** The id in what was pasted: an id, the id of a passage, or a link to a document. */
export function documentIdIn(pasted: string): string {
  return UUID.exec(pasted)?.[0].toLowerCase() ?? pasted.trim();
}

/** A command that makes the same search; the key is a variable, so that a copied command never contains it. */
export function curlOf(state: SearchState, origin: string, withKey: boolean): string {
  const body = JSON.stringify(requestOf(state)).replace(/'/g, "'\\''");
  const key = withKey ? ` \\\n  -H "Authorization: Bearer $DTRAG_KEY"` : "";
  return `curl -s ${origin}/search -H 'Content-Type: application/json'${key} \\\n  -d '${body}'`;
}
