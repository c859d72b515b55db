/** A tree of categories to tick, with a search above it. */
import { useState } from "preact/hooks";
import { t } from "../text/common";
import type { Branch, Selection } from "./branches";
import { rowsOf } from "./branches";
import { Field } from "./Field";
import { Tree } from "./Tree";
import styles from "./TreePicker.module.css";

interface Props {
  tree: readonly Branch[];
  label: string;
  selection: Selection;
  onSelect: (selection: Selection) => void;
}

const NOTHING_OPEN: ReadonlySet<string> = new Set();

export function TreePicker({ tree, label, selection, onSelect }: Props) {
  const [search, setSearch] = useState("");
  const matches = search.trim() ? rowsOf(tree, NOTHING_OPEN, search).length : 0;
  return (
    <div class={styles.picker}>
      <Field
        label={t("tree.search")}
        hideLabel
        type="search"
        placeholder={t("tree.search")}
        value={search}
        onInput={setSearch}
      />
      <p class={search.trim() && matches === 0 ? styles.none : "quiet"} role="status">
        {search.trim() && (matches ? t("tree.found", { n: matches }) : t("tree.none"))}
      </p>
      <Tree tree={tree} label={label} search={search} selection={selection} onSelect={onSelect} />
    </div>
  );
}
