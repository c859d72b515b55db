/**
 * The address of the regulations: #/regulations?asOf=2024-03-01, #/regulations/NAME?at=ARTICLE (its whole text, at that
 * article; #/regulations?at=NAME%20ARTICLE is the same), #/regulations/NAME?part=editions&before=…&after=…,
 * #/regulations?show=stale, #/regulations?show=verify.
 */
import type { components } from "../../api/schema";
import { flag, integer, oneOf, queryState, text } from "../../state/query";
import { href } from "../../state/router";

/** What the first page shows. */
export const SHOWN = ["list", "stale", "verify"] as const;
/** What the page of a regulation shows. */
export const PARTS = ["text", "editions", "stale"] as const;
/** Citations of provisions that changed after them, or of provisions that do not exist. */
export const BROKEN = ["changed", "missing"] as const;
export const PAGE = 50;
/** Regulations on one page of their list: those of a whole book. */
export const LIST_PAGE = 500;

export const address = queryState({
  show: oneOf(SHOWN, "list"),
  part: oneOf(PARTS, "text"),
  broken: oneOf(BROKEN, "changed"),
  asOf: text(),
  /** What the text is scrolled to: an article, or headings (제2편 학사/제1장 총칙). */
  at: text(),
  /** Whether the amendment marks in the text are shown. */
  marks: flag(),
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
export type Whole = Schemas["WholeRegulationShape"];
export type Provision = Whole["provisions"][number];
export type ShownProvision = Schemas["ProvisionShape"];
export type Citation = Provision["citations"][number];
export type Edition = Whole["editions"][number];
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

/** 학칙 제2조제1항 is in 학칙 제2조; 학칙 제1장 and 학칙 are whole regulations here. */
const IN_PROVISION = /^(.+?)\s*(제\s?\d+조(?:의\s?\d+)?|별[표지첨][^–]*|부칙)/;
const DIVISION = /\s*제\s?\d+[편장절관]$/;

/** The regulation of what a citation means, and its provision; "" for the whole regulation. */
export function placeOf(target: string): [regulation: string, label: string] {
  const [, regulation, label] = IN_PROVISION.exec(target) ?? [];
  return regulation && label ? [regulation, label.trim()] : [target.replace(DIVISION, ""), ""];
}

/** The link to a place in the text of a regulation; "": its beginning. */
export const linkToPlace = (regulation: string, at: string, asOf = ""): string =>
  href("regulations", {
    path: [regulation],
    query: { at: at || undefined, asOf: asOf || undefined, marks: address.read().marks ? "1" : undefined },
  });

/** The link to what a citation means. */
export const linkToCited = (target: string, asOf = ""): string => linkToPlace(...placeOf(target), asOf);

export interface Division<Within> {
  title: string;
  /** The titles above it and its own: where a link leads to. */
  place: string;
  provisions: Within[];
  children: Division<Within>[];
}

/** Neighbouring provisions under their parts, chapters and sections (편, 장, 절), in the order of the text. */
export function divisionsOf<Within extends { headings: readonly string[] }>(
  provisions: readonly Within[],
): Division<Within>[] {
  const top: Division<Within>[] = [];
  for (const provision of provisions) {
    const titles = provision.headings.length > 0 ? provision.headings : [""];
    let within = top;
    for (const [depth, title] of titles.entries()) {
      let last = within.at(-1);
      if (last?.title !== title) {
        last = { title, place: titles.slice(0, depth + 1).join("/"), provisions: [], children: [] };
        within.push(last);
      }
      if (depth === titles.length - 1) last.provisions.push(provision);
      within = last.children;
    }
  }
  return top;
}

/** Its number and title: 제21조 (학위의 수여). */
export const headOf = ({ label, title }: { label: string; title: string }): string =>
  title ? `${label} (${title})` : label;

/** What an address calls a provision: its label; addenda have the same one, and are told apart by their titles. */
export const placeIn = (provision: { label: string; title: string }): string =>
  provision.label === "부칙" ? headOf(provision) : provision.label;

/** The days on which an edition became valid, the newest first, with those of the address. */
export function daysOf(editions: readonly Edition[], ...chosen: readonly string[]): string[] {
  const days = [...editions.map((edition) => edition.effective_from ?? ""), ...chosen.filter(dayOf)];
  return [...new Set(days)].filter(Boolean).sort().reverse();
}

/** The provisions that a citation means, without the one that it is in. */
export const targetsOf = ({ targets }: Citation, own: string): readonly string[] =>
  targets.filter((target) => target !== own);

/** Whether a citation means more than a part of the provision that it is in (제1항, 이 조). */
export const citesAnother = (citation: Citation, own: string): boolean =>
  citation.targets.length === 0 || targetsOf(citation, own).length > 0;
