/** Choosing one category of the tree. */
import { useState } from "preact/hooks";
import { pathText } from "../../text/path-text";
import { useResource } from "../../state/resource";
import { api } from "../../api/client";
import { rowsOf } from "../branches";
import { Button } from "../Button";
import { Dialog } from "../Dialog";
import { Field } from "../Field";
import { Loaded } from "../States";
import { Tree } from "../Tree";
import { t } from "./text";
import styles from "./CategoryDialog.module.css";

interface Props {
  open: boolean;
  /** Of several documents; left out for one. */
  title?: string;
  alternatives: readonly (readonly string[])[];
  onClose: () => void;
  onChoose: (path: readonly string[]) => void;
}

const NOTHING_OPEN: ReadonlySet<string> = new Set();

export function CategoryDialog({ open, title = t("category.title"), alternatives, onClose, onChoose }: Props) {
  const [chosen, setChosen] = useState<readonly string[] | null>(null);
  const [search, setSearch] = useState("");
  const tree = useResource(
    open ? (signal) => api.get("/taxonomy/{version}/tree", { path: { version: "active" }, signal }) : null,
    [],
  );
  return (
    <Dialog
      title={title}
      open={open}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t("category.cancel")}</Button>
          <Button kind="main" disabled={!chosen} onClick={() => chosen && onChoose(chosen)}>
            {chosen ? t("category.move", { name: pathText(chosen) }) : t("category.choose")}
          </Button>
        </>
      }
    >
      <div class={styles.content}>
        {alternatives.length > 0 && (
          <div class={styles.alternatives} role="group" aria-label={t("category.alternatives")}>
            {alternatives.map((path) => (
              <Button
                key={path.join("/")}
                small
                aria-pressed={path.join("/") === chosen?.join("/")}
                onClick={() => setChosen(path)}
              >
                {pathText(path)}
              </Button>
            ))}
          </div>
        )}
        <Field type="search" label={t("category.search")} value={search} autocomplete="off" onInput={setSearch} />
        <Loaded resource={tree}>
          {({ tree: branches }) => (
            <>
              {search.trim() && rowsOf(branches, NOTHING_OPEN, search).length === 0 && <p>{t("category.none")}</p>}
              <Tree
                tree={branches}
                label={title}
                search={search}
                current={chosen}
                onCurrent={(branch) => setChosen(branch.path)}
              />
            </>
          )}
        </Loaded>
      </div>
    </Dialog>
  );
}
