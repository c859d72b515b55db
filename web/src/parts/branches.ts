/** Selecting branches of a category tree: a selected category stands for everything below it. */

export interface Branch {
  /** Outermost name first. */
  path: readonly string[];
  name: string;
  /** Documents in the category itself. */
  documents?: number;
  /** Its grade, the highest on its path; empty for none. */
  grade?: string;
  children: readonly Branch[];
}

export type Check = "on" | "off" | "mixed";
/** Selected paths, none of them below another. */
export type Selection = readonly (readonly string[])[];

export const pathKey = (path: readonly string[]): string => path.map((name) => encodeURIComponent(name)).join("/");

function isWithin(path: readonly string[], above: readonly string[]): boolean {
  return above.length <= path.length && above.every((name, depth) => name === path[depth]);
}

export function checkOf(path: readonly string[], selection: Selection): Check {
  if (selection.some((chosen) => isWithin(path, chosen))) return "on";
  return selection.some((chosen) => isWithin(chosen, path)) ? "mixed" : "off";
}

/**
 * The selection after a click on the branch at `path`: off and mixed become on, on becomes off.
 *
 * Switching off a part of a selected branch leaves its siblings selected; a branch whose parts are all selected is
 * selected itself.
 */
export function toggled(tree: readonly Branch[], path: readonly string[], selection: Selection): Selection {
  if (checkOf(path, selection) !== "on") {
    const others = selection.filter((chosen) => !isWithin(chosen, path));
    return joined(tree, [...others, path]);
  }
  const holder = selection.find((chosen) => isWithin(path, chosen)) ?? path;
  const others = selection.filter((chosen) => chosen !== holder);
  return [...others, ...siblingsAlong(tree, holder, path)];
}

/** Everything below `holder` but the branch at `path`, in as few branches as possible. */
function siblingsAlong(tree: readonly Branch[], holder: readonly string[], path: readonly string[]): string[][] {
  const kept: string[][] = [];
  let level = branchAt(tree, holder)?.children ?? [];
  for (let depth = holder.length; depth < path.length; depth += 1) {
    for (const branch of level) if (branch.name !== path[depth]) kept.push([...branch.path]);
    level = level.find((branch) => branch.name === path[depth])?.children ?? [];
  }
  return kept;
}

/** The selection in which complete families are replaced by their parent. */
function joined(tree: readonly Branch[], selection: Selection): Selection {
  let current = selection;
  const visit = (branch: Branch): void => {
    branch.children.forEach(visit);
    const complete = branch.children.length > 0 && branch.children.every((child) => has(current, child.path));
    if (complete) current = [...current.filter((chosen) => !isWithin(chosen, branch.path)), branch.path];
  };
  tree.forEach(visit);
  return current;
}

function has(selection: Selection, path: readonly string[]): boolean {
  return selection.some((chosen) => chosen.length === path.length && isWithin(path, chosen));
}

export function branchAt(tree: readonly Branch[], path: readonly string[]): Branch | undefined {
  let level = tree;
  let branch: Branch | undefined;
  for (const name of path) {
    branch = level.find((candidate) => candidate.name === name);
    if (!branch) return undefined;
    level = branch.children;
  }
  return branch;
}

/** Documents in the category and everything below it. */
export function documentsIn(branch: Branch): number {
  return branch.children.reduce((total, child) => total + documentsIn(child), branch.documents ?? 0);
}

export interface Row {
  branch: Branch;
  level: number;
  position: number;
  siblings: number;
  expanded: boolean;
}

/** The visible rows. With `search`, the matching branches and those above them, all expanded. */
export function rowsOf(tree: readonly Branch[], expanded: ReadonlySet<string>, search = ""): Row[] {
  const wanted = search.trim().toLocaleLowerCase();
  const rows: Row[] = [];
  const visit = (branches: readonly Branch[], level: number): void => {
    const shown = wanted ? branches.filter((branch) => holds(branch, wanted)) : branches;
    shown.forEach((branch, index) => {
      const open = wanted ? branch.children.some((child) => holds(child, wanted)) : expanded.has(pathKey(branch.path));
      rows.push({ branch, level, position: index + 1, siblings: shown.length, expanded: open });
      if (open) visit(branch.children, level + 1);
    });
  };
  visit(tree, 1);
  return rows;
}

function holds(branch: Branch, wanted: string): boolean {
  return branch.name.toLocaleLowerCase().includes(wanted) || branch.children.some((child) => holds(child, wanted));
}
