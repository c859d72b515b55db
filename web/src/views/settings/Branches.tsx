/** Public branches as a value of a setting: nothing, paths separated by commas, or * for all categories. */
import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { Segmented } from "../../parts/Segmented";
import { Loaded } from "../../parts/States";
import type { Selection } from "../../parts/branches";
import { TreePicker } from "../../parts/TreePicker";
import { useResource } from "../../state/resource";
import { t } from "./text";
import styles from "./SettingsView.module.css";

const EXTENTS = ["none", "some", "every"] as const;
type Extent = (typeof EXTENTS)[number];

const pathsIn = (value: string): Selection =>
  value
    .split(",")
    .filter((path) => path.trim() && path.trim() !== "*")
    .map((path) => path.split("/").map((name) => name.trim()));

export function Branches({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const [extent, setExtent] = useState<Extent>(value === "*" ? "every" : value ? "some" : "none");
  const [selection, setSelection] = useState(pathsIn(value));
  const tree = useResource(
    (signal) => api.get("/taxonomy/{version}/tree", { path: { version: "active" }, signal }),
    [],
  );

  function change(to: Extent, paths: Selection) {
    setExtent(to);
    setSelection(paths);
    onChange({ none: "", every: "*", some: paths.map((path) => path.join("/")).join(", ") }[to]);
  }

  return (
    <>
      <Segmented
        label={t("change.branches")}
        value={extent}
        choices={EXTENTS.map((each) => ({ value: each, text: t(`change.${each}`) }))}
        onChange={(to) => change(to, selection)}
      />
      {extent === "every" && <p class={styles.hint}>{t("change.everyHint")}</p>}
      {extent === "some" && (
        <Loaded resource={tree}>
          {({ tree: branches }) => (
            <TreePicker
              tree={branches}
              label={t("change.some")}
              selection={selection}
              onSelect={(paths) => change("some", paths)}
            />
          )}
        </Loaded>
      )}
    </>
  );
}
