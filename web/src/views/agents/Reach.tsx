/** How many documents the ticked branches hold today. */
import { useResource } from "../../state/resource";
import { api } from "../../api/client";
import { pathKey, type Selection } from "../../parts/branches";
import { Loaded } from "../../parts/States";
import { t } from "./text";

export function Reach({ paths }: { paths: Selection }) {
  const node_paths = paths.map((path) => [...path]);
  const reach = useResource(
    paths.length > 0 ? (signal) => api.post("/agents/reach", { body: { node_paths }, signal }) : null,
    [paths.map(pathKey).join("\n")],
  );
  if (paths.length === 0) return <p role="status">{t("form.tick")}</p>;
  return (
    <Loaded resource={reach} lines={1}>
      {({ documents, passages }) => <p role="status">{t("form.documents", { n: documents, passages })}</p>}
    </Loaded>
  );
}
