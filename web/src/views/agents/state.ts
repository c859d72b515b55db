/** The address of the agents: #/agents, #/agents/new?branch=HR/Leave, #/agents/AGENT?q=…, #/agents/AGENT/edit. */
import { categories, integer, queryState, text } from "../../state/query";
import { href } from "../../state/router";
import type { components } from "../../api/schema";

export const PAGE = 100;

export const address = queryState({
  /** Agents before this page of the list. */
  offset: integer(0),
  /** The test question. */
  q: text(),
  /** Name and branches of a new agent. */
  name: text(),
  branch: categories(),
  /** Other fields of a new agent, or the changes of one: see `withChanges`. */
  changes: text(),
  /** The edition that the changes are of. */
  edition: integer(0),
});

export type Agent = components["schemas"]["AgentShape"];
export const linkTo = (id: string, ...more: string[]): string => href("agents", { path: [id, ...more] });
