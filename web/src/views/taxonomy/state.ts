/** The address of the view: the draft and the selected category are in it, so that Back undoes a change. */
import { announce } from "../../state/announce";
import { href, navigate } from "../../state/router";
import { formatPath, list, parsePath, queryState, text } from "../../state/query";
import { readOperations, resultOf, type Operation, type Path } from "./operations";
import { t } from "./text";

export const address = queryState({ op: list(), undone: list(), at: text(), why: text(), base: text() });

export const draftOperations = (): Operation[] => readOperations(address.read().op);
export const undoneOperations = (): Operation[] => readOperations(address.read().undone);
export const selectedPath = (): Path => parsePath(address.read().at);

export function select(path: Path): void {
  address.set({ at: formatPath(path) }, { replace: true });
}

/** Add an operation to the draft: one step for Back. */
export function addOperation(operation: Operation): void {
  const { op } = address.read();
  address.set({ op: [...op, JSON.stringify(operation)], undone: [], at: formatPath(resultOf(operation)) });
}

/** Take the last operation out of the draft; `redoLast` puts it in again. */
export function undoLast(): void {
  const { op, undone } = address.read();
  const last = op.at(-1);
  if (last === undefined) return;
  address.set({ op: op.slice(0, -1), undone: [...undone, last] });
  announce(t("draft.undone", { n: op.length - 1 }));
}

export function redoLast(): void {
  const { op, undone } = address.read();
  const last = undone.at(-1);
  if (last === undefined) return;
  address.set({ op: [...op, last], undone: undone.slice(0, -1) });
  announce(t("draft.redone", { n: op.length + 1 }));
}

/** Keep the first operations only; the others do not fit the tree. */
export function keepOperations(count: number): void {
  address.set({ op: address.read().op.slice(0, count), undone: [] });
  announce(t("draft.undone", { n: count }));
}

export function discard(): void {
  address.set({ op: [], undone: [], why: "" });
}

/** The link to a draft with these operations on the active tree. */
export function draftLink(operations: readonly Operation[], why: string): string {
  const query = new URLSearchParams(operations.map((operation) => ["op", JSON.stringify(operation)]));
  if (why) query.set("why", why);
  return href("taxonomy", { query });
}

export const versionLink = (version: string): string => href("taxonomy", { path: ["versions", version] });
export const goToVersion = (version: string): void => navigate(versionLink(version));
