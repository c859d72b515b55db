/** The address of the view: the draft and the selected category are in it, so that Back undoes a change. */
import { href, navigate } from "../../app/router";
import { formatPath, list, parsePath, queryState, text } from "../../app/query";
import { readOperations, resultOf, type Operation, type Path } from "./operations";

export const address = queryState({ op: list(), at: text(), why: text(), base: text() });

export const draftOperations = (): Operation[] => readOperations(address.read().op);
export const selectedPath = (): Path => parsePath(address.read().at);

export function select(path: Path): void {
  address.set({ at: formatPath(path) }, { replace: true });
}

/** Add an operation to the draft: one step for Back. */
export function addOperation(operation: Operation): void {
  const { op } = address.read();
  address.set({ op: [...op, JSON.stringify(operation)], at: formatPath(resultOf(operation)) });
}

export function keepOperations(count: number): void {
  address.set({ op: address.read().op.slice(0, count) });
}

export function discard(): void {
  address.set({ op: [], why: "" });
}

/** The link to a draft with these operations on the active tree. */
export function draftLink(operations: readonly Operation[], why: string): string {
  const query = new URLSearchParams(operations.map((operation) => ["op", JSON.stringify(operation)]));
  if (why) query.set("why", why);
  return href("taxonomy", { query });
}

export const versionLink = (version: string): string => href("taxonomy", { path: ["versions", version] });
export const goToVersion = (version: string): void => navigate(versionLink(version));
