/** Several items of the queue: those that can be selected together, and their decisions one after the other. */
import { asProblem, type Problem } from "../../api/problem";
import { pathText } from "../../text/path-text";
import { canApprove, categoryOf, type Item } from "./items";

export type Decision = "approve" | "correct" | "skip";

export interface Group {
  kind: Item["kind"];
  /** The proposed category in words; "" for all items of the kind. */
  path: string;
  ids: string[];
}

/** All documents, those with the same proposal, and all answers; only groups of two or more. */
export function groupsOf(items: readonly Item[]): Group[] {
  const groups = new Map<string, Group>();
  const add = (item: Item, path: string) => {
    const key = `${item.kind} ${path}`;
    const group = groups.get(key) ?? { kind: item.kind, path, ids: [] };
    group.ids.push(item.item_id);
    groups.set(key, group);
  };
  for (const item of items) add(item, "");
  for (const item of items) if (proposalOf(item)) add(item, proposalOf(item));
  return [...groups.values()].filter((group) => group.ids.length > 1);
}

/** The selection with these items as `id` becomes: in it when it was not. */
export function toggled(ticked: ReadonlySet<string>, ids: readonly string[], id: string): ReadonlySet<string> {
  const after = new Set(ticked);
  for (const each of ids)
    if (ticked.has(id)) after.delete(each);
    else after.add(each);
  return after;
}

export const proposalOf = (item: Item): string =>
  item.kind === "classification" ? pathText(categoryOf(item).path) : "";

/** Whether the decision can be made about the item: a category is for documents. */
export const fits = (decision: Decision, item: Item): boolean =>
  decision === "skip" || (decision === "approve" ? canApprove(item) : item.kind === "classification");

export interface Undecided {
  item: Item;
  problem: Problem;
}

/** Sends one decision after another until `stopped`; `progress` gets the items that are decided. Returns the others. */
export async function decideAll(
  items: readonly Item[],
  send: (item: Item) => Promise<unknown>,
  progress: (item: Item) => void,
  stopped: () => boolean,
): Promise<Undecided[]> {
  const undecided: Undecided[] = [];
  for (const item of items) {
    if (stopped()) break;
    try {
      await send(item);
      progress(item);
    } catch (error) {
      undecided.push({ item, problem: asProblem(error) });
    }
  }
  return undecided;
}
