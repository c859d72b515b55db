/** The branches of an agent by the names of their categories; one that is gone, as the agent has it. */
import { useResource } from "../../state/resource";
import { api } from "../../api/client";
import type { Branch } from "../../parts/branches";
import { pathText } from "../../text/path-text";
import { spelledBy } from "./draft";
import type { Agent } from "./state";

/** The tree that has the names: undefined while it is read, empty when it cannot be read. */
export function useTree(): readonly Branch[] | undefined {
  const tree = useResource(
    (signal) => api.get("/taxonomy/{version}/tree", { path: { version: "active" }, signal }),
    [],
  );
  return tree.data?.tree ?? (tree.loading ? undefined : []);
}

export function Branches({ agent, tree }: { agent: Agent; tree: readonly Branch[] | undefined }) {
  if (!tree) return <span aria-busy="true" />;
  const spelled = spelledBy(tree);
  return <>{agent.allowed_category_paths.map((path) => pathText(spelled(path) ?? path)).join(", ")}</>;
}
