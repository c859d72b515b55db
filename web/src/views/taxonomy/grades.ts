/** Grades of branches: their names, and branches that are graded and public. */
import { api } from "../../api/client";
import { branchAt, type Branch } from "../../parts/branches";
import { parsePath } from "../../state/query";
import { useResource } from "../../state/resource";
import { mayWholeTreeAs } from "../../state/session";
import { pathText } from "../../text/path-text";

export interface Grades {
  /** The lowest first; empty while they are not known. */
  names: string[];
  /** Paths of branches that can be read without a key. */
  open: string[];
}

/** The settings of grades and of public branches, for administrators of the whole tree. */
export function useGrades(): Grades {
  const allowed = mayWholeTreeAs("admin");
  const { data } = useResource(allowed ? (signal) => api.get("/settings", { signal }) : null, [allowed]);
  const listed = (name: string) =>
    String(data?.settings.find((setting) => setting.name === name)?.value ?? "")
      .split(",")
      .map((part) => part.trim())
      .filter(Boolean);
  return { names: listed("grades"), open: listed("public") };
}

/** Branches that anybody may read although they have a grade above the lowest, in words. */
export function gradedInPublic(tree: readonly Branch[], { names, open }: Grades): string[] {
  const graded = (branch: Branch): boolean => Boolean(branch.grade) && branch.grade !== names[0];
  const within = (branch: Branch): Branch[] => (graded(branch) ? [branch] : branch.children.flatMap(within));
  return open.flatMap((path) => {
    const branch = branchAt(tree, parsePath(path));
    return branch ? within(branch).map((each) => `${pathText(each.path)} (${each.grade})`) : [];
  });
}
