/** The operations of a proposal, as the service reads them, and their result on a tree. */
import { pathText } from "../../text/path-text";
import { pathKey, type Branch } from "../../parts/branches";

export type Path = readonly string[];
export interface Part {
  name: string;
  keywords?: string[];
  documents?: string[];
}
export type Operation =
  | { op: "add"; path: Path }
  | { op: "rename"; path: Path; name: string }
  | { op: "move"; path: Path; to: Path }
  | { op: "merge"; paths: Path[]; into: Path }
  | { op: "delete"; path: Path; to?: Path }
  | { op: "split"; path: Path; into: Part[] }
  /** An empty grade takes that of the category away. */
  | { op: "grade"; path: Path; grade: string };

export const DEEPEST = 8;
export const MOST_OPERATIONS = 1000;

/** Why an operation does not fit the tree. */
export type MisfitKind = "name" | "exists" | "missing" | "inside" | "deep";
export class Misfit extends Error {
  constructor(
    readonly kind: MisfitKind,
    readonly subject: string,
  ) {
    super(`${kind}: ${subject}`);
  }
}

/** An operation from a link or from a stored version; null when it is none. Numbers of categories are left out. */
export function operationFrom(value: unknown): Operation | null {
  if (typeof value !== "object" || value === null) return null;
  const { op, path, paths, name, to, into, grade } = value as Record<string, unknown>;
  if (op === "merge")
    return Array.isArray(paths) && paths.every(isPath) && isPath(into) ? { op, paths, into: [...into] } : null;
  if (!isPath(path)) return null;
  if (op === "add") return { op, path };
  if (op === "rename" && typeof name === "string") return { op, path, name };
  if (op === "move") return { op, path, to: isPath(to) ? to : [] };
  if (op === "delete") return isPath(to) && to.length > 0 ? { op, path, to } : { op, path };
  if (op === "grade" && typeof grade === "string") return { op, path, grade };
  if (op === "split" && Array.isArray(into)) return { op, path, into: into.map(partFrom) };
  return null;
}

function isPath(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((name) => typeof name === "string");
}

function partFrom(value: unknown): Part {
  const { name, keywords, documents } = (value ?? {}) as Record<string, unknown>;
  const part: Part = { name: typeof name === "string" ? name : "" };
  if (isPath(keywords)) part.keywords = keywords;
  if (isPath(documents)) part.documents = documents;
  return part;
}

export function readOperations(texts: readonly string[]): Operation[] {
  return texts.flatMap((text) => {
    try {
      return operationFrom(JSON.parse(text)) ?? [];
    } catch {
      return []; // a link that someone shortened
    }
  });
}

/** Where the changed category is afterwards; of a split, the first new one. */
export function resultOf(operation: Operation): Path {
  if (operation.op === "rename") return [...operation.path.slice(0, -1), operation.name];
  if (operation.op === "move") return [...operation.to, operation.path.at(-1) ?? ""];
  if (operation.op === "merge") return operation.into;
  if (operation.op === "delete") return operation.to ?? operation.path.slice(0, -1);
  if (operation.op === "split") return [...operation.path, ...operation.into.slice(0, 1).map(({ name }) => name)];
  return operation.path;
}

interface Node {
  name: string;
  documents: number;
  grade: string;
  children: Node[];
  /** Categories of the given tree whose documents are here. */
  origins: Path[];
}

export interface Draft {
  tree: Branch[];
  /** Categories of the given tree whose documents a category of the draft has, by `pathKey`. */
  origins: ReadonlyMap<string, readonly Path[]>;
  /** Index of the first operation that does not fit, and why; later ones are not applied. */
  misfit: { index: number; error: Misfit } | null;
}

/** The tree after the operations. Documents count as they will be, except those of a split; grades are those of now: only
 * the service knows. */
export function applied(tree: readonly Branch[], operations: readonly Operation[]): Draft {
  const root: Node = { ...leaf(""), children: tree.map(copied) };
  let misfit: Draft["misfit"] = null;
  for (const [index, operation] of operations.entries()) {
    try {
      apply(root, operation);
    } catch (error) {
      if (!(error instanceof Misfit)) throw error;
      misfit = { index, error };
      break;
    }
  }
  const origins = new Map<string, readonly Path[]>();
  return { tree: branches(root, [], origins), origins, misfit };
}

function apply(root: Node, operation: Operation): void {
  switch (operation.op) {
    case "add":
      return place(at(root, operation.path.slice(0, -1)), leaf(operation.path.at(-1) ?? ""), operation.path.length);
    case "rename":
      return rename(root, operation.path, operation.name);
    case "move":
      return move(root, operation.path, operation.to);
    case "merge":
      return operation.paths.forEach((path) => merge(root, path, operation.into));
    case "delete":
      return remove(root, operation.path, operation.to ?? operation.path.slice(0, -1));
    case "grade":
      return void at(root, operation.path);
    case "split":
      return operation.into.forEach((part) =>
        place(at(root, operation.path), leaf(part.name), operation.path.length + 1),
      );
  }
}

function rename(root: Node, path: Path, name: string): void {
  const node = at(root, path);
  const parent = at(root, path.slice(0, -1));
  checkName(name);
  if (parent.children.some((other) => other !== node && sameName(other.name, name))) throw new Misfit("exists", name);
  node.name = name;
}

function move(root: Node, path: Path, to: Path): void {
  const node = at(root, path);
  const parent = at(root, to);
  if (contains(node, parent)) throw new Misfit("inside", node.name);
  const before = at(root, path.slice(0, -1));
  if (before === parent) return;
  place(parent, node, to.length + heightOf(node));
  before.children.splice(before.children.indexOf(node), 1);
}

function merge(root: Node, path: Path, into: Path): void {
  const node = at(root, path);
  const target = at(root, into);
  if (contains(node, target)) throw new Misfit("inside", node.name);
  const parent = at(root, path.slice(0, -1));
  parent.children.splice(parent.children.indexOf(node), 1);
  join(node, target);
  if (into.length + heightOf(target) - 1 > DEEPEST) throw new Misfit("deep", target.name);
}

function join(node: Node, target: Node): void {
  target.documents += node.documents;
  target.origins.push(...node.origins);
  for (const child of node.children) {
    const same = target.children.find((other) => sameName(other.name, child.name));
    if (same) join(child, same);
    else target.children.push(child);
  }
}

function remove(root: Node, path: Path, to: Path): void {
  const node = at(root, path);
  const heir = at(root, to);
  if (contains(node, heir)) throw new Misfit("inside", node.name);
  const parent = at(root, path.slice(0, -1));
  parent.children.splice(parent.children.indexOf(node), 1);
  heir.documents += total(node);
  heir.origins.push(...originsIn(node));
}

function place(parent: Node, node: Node, depth: number): void {
  checkName(node.name);
  if (parent.children.some((other) => sameName(other.name, node.name))) throw new Misfit("exists", node.name);
  if (depth > DEEPEST) throw new Misfit("deep", node.name);
  parent.children.push(node);
}

function checkName(name: string): void {
  if (!name.trim()) throw new Misfit("name", name);
}

function at(root: Node, path: Path): Node {
  let node = root;
  for (const name of path) {
    const next = node.children.find((child) => sameName(child.name, name));
    if (!next) throw new Misfit("missing", pathText(path));
    node = next;
  }
  return node;
}

const sameName = (name: string, other: string) => keyOf(name) === keyOf(other);
const keyOf = (name: string) => name.normalize("NFKC").trim().toLocaleLowerCase();
const leaf = (name: string): Node => ({ name, documents: 0, grade: "", children: [], origins: [] });
const contains = (node: Node, other: Node): boolean =>
  node === other || node.children.some((child) => contains(child, other));
const heightOf = (node: Node): number => 1 + Math.max(0, ...node.children.map(heightOf));
const total = (node: Node): number => node.children.reduce((sum, child) => sum + total(child), node.documents);
const originsIn = (node: Node): Path[] => [...node.origins, ...node.children.flatMap(originsIn)];

function copied({ path, name, documents = 0, grade = "", children }: Branch): Node {
  return { name, documents, grade, children: children.map(copied), origins: [path] };
}

function branches(node: Node, path: Path, origins: Map<string, readonly Path[]>): Branch[] {
  return [...node.children].sort(byName).map((child) => {
    const own = [...path, child.name];
    origins.set(pathKey(own), child.origins);
    const { name, documents, grade } = child;
    return { path: own, name, documents, grade, children: branches(child, own, origins) };
  });
}

const byName = (one: Node, other: Node) => one.name.localeCompare(other.name);

/** Keys of the categories that the operations made or changed, to mark them in the tree. */
export function changedKeys(operations: readonly Operation[]): ReadonlySet<string> {
  return new Set(
    operations.flatMap((operation) => {
      if (operation.op === "delete") return [];
      const parts = operation.op === "split" ? operation.into.map(({ name }) => [...operation.path, name]) : [];
      return [resultOf(operation), ...parts].map(pathKey);
    }),
  );
}
