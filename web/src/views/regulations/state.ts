/**
 * The address of the regulations: #/regulations?asOf=2024-03-01, #/regulations/NAME?part=editions&before=…&after=…,
 * #/regulations?at=NAME%20ARTICLE (an article), #/regulations?show=stale, #/regulations?show=verify.
 */
import type { components } from "../../api/schema";
import { integer, oneOf, queryState, text } from "../../state/query";
import { href } from "../../state/router";

/** What the first page shows. */
export const SHOWN = ["list", "stale", "verify"] as const;
/** What the page of a regulation shows. */
export const PARTS = ["outline", "editions", "stale"] as const;
/** Citations of provisions that changed after them, or of provisions that do not exist. */
export const BROKEN = ["changed", "missing"] as const;
export const PAGE = 50;

export const address = queryState({
  show: oneOf(SHOWN, "list"),
  part: oneOf(PARTS, "outline"),
  broken: oneOf(BROKEN, "changed"),
  asOf: text(),
  /** A provision by its name in citations, such as 학칙 제21조. */
  at: text(),
  before: text(),
  after: text(),
  offset: integer(),
  /** The list: letters of a name or code, and its order. */
  find: text(),
  order: oneOf(["name", "code"] as const, "name"),
  /** The regulation that a pasted text means where it names none. */
  regulation: text(),
  /** Of a pasted text: all that cites, or only what is not as it should be. */
  findings: oneOf(["all", "wrong"] as const, "all"),
});

type Schemas = components["schemas"];
export type Outline = Schemas["OutlineShape"];
export type Listed = Outline["provisions"][number];
export type Provision = Schemas["ProvisionShape"];
export type Citation = Provision["citations"][number];
export type Change = Schemas["ProvisionChangeShape"];

/** A day as the service reads it, or null: an unfinished or impossible one is not sent. */
export function dayOf(value: string): string | null {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(value)) return null;
  const date = new Date(`${value}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(value) ? value : null;
}

/** The name of a provision without that of its regulation, where that goes without saying. */
export const nameWithin = (name: string, regulation: string): string =>
  name.startsWith(`${regulation} `) ? name.slice(regulation.length + 1) : name;

export const asOfQuery = (asOf: string): { as_of?: string } => (dayOf(asOf) ? { as_of: asOf } : {});

export const linkToRegulation = (name: string, asOf = ""): string =>
  href("regulations", { path: [name], query: { asOf: asOf || undefined } });

export const linkToProvision = (name: string, asOf = ""): string =>
  href("regulations", { query: { at: name, asOf: asOf || undefined } });

/** 학칙 제2조제1항 is in 학칙 제2조; 학칙 제1장 and 학칙 are in the outline. */
const IN_PROVISION = /^(.+?)\s*(제\s?\d+조(?:의\s?\d+)?|별[표지첨][^–]*|부칙)/;
const DIVISION = /\s*제\s?\d+[편장절관]$/;

/** The link to what a citation means: a provision, or the outline of the regulation. */
export function linkToCited(target: string, asOf = ""): string {
  const [, regulation, label] = IN_PROVISION.exec(target) ?? [];
  if (regulation && label) return linkToProvision(nameIn(regulation, label.trim()), asOf);
  return linkToRegulation(target.replace(DIVISION, ""), asOf);
}

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

/** The provisions that a citation means, without the one that it is in. */
export const targetsOf = ({ targets }: Citation, own: string): readonly string[] =>
  targets.filter((target) => target !== own);

/** Whether a citation means more than a part of the provision that it is in (제1항, 이 조). */
export const citesAnother = (citation: Citation, own: string): boolean =>
  citation.targets.length === 0 || targetsOf(citation, own).length > 0;
