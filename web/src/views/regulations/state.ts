/**
 * The address of the regulations: #/regulations?asOf=2024-03-01, #/regulations/NAME?part=editions&before=…&after=…,
 * #/regulations?at=NAME%20ARTICLE (an article).
 */
import type { components } from "../../api/schema";
import { integer, oneOf, queryState, text } from "../../app/query";
import { href } from "../../app/router";

export const PARTS = ["outline", "editions"] as const;
export const PAGE = 50;

export const address = queryState({
  part: oneOf(PARTS, "outline"),
  asOf: text(),
  /** A provision by its name in citations, such as 학칙 제21조. */
  at: text(),
  before: text(),
  after: text(),
  offset: integer(),
});

type Schemas = components["schemas"];
export type Outline = Schemas["OutlineShape"];
export type Listed = Outline["provisions"][number];
export type Provision = Schemas["ProvisionShape"];
export type Change = Schemas["ProvisionChangeShape"];

/** A day as the service reads it, or null: an unfinished or impossible one is not sent. */
export function dayOf(value: string): string | null {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(value)) return null;
  const date = new Date(`${value}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(value) ? value : null;
}

export const asOfQuery = (asOf: string): { as_of?: string } => (dayOf(asOf) ? { as_of: asOf } : {});

export const linkToRegulation = (name: string, asOf = ""): string =>
  href("regulations", { path: [name], query: { asOf: asOf || undefined } });

export const linkToProvision = (name: string, asOf = ""): string =>
  href("regulations", { query: { at: name, asOf: asOf || undefined } });

export interface Heading {
  title: string;
  provisions: Listed[];
  children: Heading[];
}

/** The provisions under their chapters and sections, in the order of the text. */
export function headingsOf(provisions: readonly Listed[]): Heading {
  const root: Heading = { title: "", provisions: [], children: [] };
  for (const provision of provisions) {
    let current = root;
    for (const title of provision.headings) {
      const last = current.children.at(-1);
      const next = last?.title === title ? last : { title, provisions: [], children: [] };
      if (next !== last) current.children.push(next);
      current = next;
    }
    current.provisions.push(provision);
  }
  return root;
}

/** The name of a provision in citations. */
export const nameIn = (regulation: string, label: string): string => `${regulation} ${label}`;

/** The days to compare when the address has none: the last two days on which an edition became valid. */
export function lastTwoDays(editions: Outline["editions"]): [string, string] | null {
  const days = [...new Set(editions.map((edition) => edition.effective_from ?? ""))].filter(Boolean).sort();
  const [before, after] = days.slice(-2);
  return before && after ? [before, after] : null;
}
