/** The tree with the draft applied; what is selected can be changed by buttons, or by keys on the tree. */
import { useEffect, useRef, useState } from "preact/hooks";
import { announce } from "../../state/announce";
import { formatPath } from "../../state/query";
import { useResource } from "../../state/resource";
import { href } from "../../state/router";
import { mayWholeTreeAs } from "../../state/session";
import { api } from "../../api/client";
import { Badge } from "../../parts/Badge";
import { Button } from "../../parts/Button";
import { branchAt, documentsIn, pathKey, type Branch } from "../../parts/branches";
import { Empty, Loaded } from "../../parts/States";
import { Tree } from "../../parts/Tree";
import { formatNumber } from "../../text/texts";
import { DraftPanel } from "./DraftPanel";
import { gradedInPublic, useGrades } from "./grades";
import { OperationDialog, type Action } from "./OperationDialog";
import { applied, changedKeys, MOST_OPERATIONS, type Operation } from "./operations";
import { sentenceOf, pathText } from "./sentences";
import { SplitDialog } from "./SplitDialog";
import { addOperation, draftOperations, redoLast, select, selectedPath, undoLast, undoneOperations } from "./state";
import { t } from "./text";
import styles from "./Editor.module.css";

const KEYS: Partial<Record<string, Action>> = { F2: "rename", Insert: "add", Delete: "remove" };
const SELECTED = "[role=treeitem][aria-selected=true]";
const FIRST = "[role=treeitem][tabindex='0']";
const ON_CATEGORY = ["add", "rename", "move", "merge", "split", "grade", "remove"] as const;

export function Editor() {
  const tree = useResource(
    (signal) => api.get("/taxonomy/{version}/tree", { path: { version: "active" }, signal }),
    [],
  );
  return (
    <Loaded resource={tree} lines={8}>
      {(active) => <Draft version={active.version} tree={active.tree} />}
    </Loaded>
  );
}

function Draft({ version, tree }: { version: string; tree: Branch[] }) {
  const frame = useRef<HTMLDivElement>(null);
  const [action, setAction] = useState<Action | "split" | null>(null);
  const moveFocus = useRef(false);
  const mayEdit = mayWholeTreeAs("admin");
  const operations = mayEdit ? draftOperations() : [];
  const draft = applied(tree, operations);
  const changed = changedKeys(operations);
  const grades = useGrades();
  const exposed = gradedInPublic(draft.tree, grades);
  const selected = branchAt(draft.tree, selectedPath());
  const full = operations.length >= MOST_OPERATIONS || draft.misfit !== null;

  useEffect(() => {
    if (!moveFocus.current) return;
    moveFocus.current = false;
    // After the tree has opened the branches above the changed category.
    setTimeout(() => {
      const rows = [SELECTED, FIRST].map((row) => frame.current?.querySelector<HTMLElement>(row));
      rows.find((row) => row)?.focus();
    });
  }, [operations.length]);

  function begin(next: Action | "split") {
    if (!full) setAction(next);
  }
  function pressed(key: string, branch: Branch): boolean {
    const next = KEYS[key];
    if (!next || !mayEdit) return false;
    select(branch.path);
    begin(next);
    return true;
  }
  function add(operation: Operation) {
    setAction(null);
    moveFocus.current = true;
    addOperation(operation);
    announce(t("draft.added", { sentence: sentenceOf(operation) }));
  }

  const undone = undoneOperations();
  function step(event: KeyboardEvent) {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || !mayEdit) return;
    const key = event.key.toLocaleLowerCase();
    const again = key === "y" || (key === "z" && event.shiftKey);
    if (!again && key !== "z") return;
    event.preventDefault();
    if (again ? undone.length : operations.length) moveFocus.current = true;
    if (again) redoLast();
    else undoLast();
  }

  return (
    <div class={styles.editor}>
      <section class={styles.tree} ref={frame} aria-labelledby="taxonomy-tree" onKeyDown={step}>
        <h2 id="taxonomy-tree">{t(operations.length ? "tree.draft" : "tree.active", { version })}</h2>
        {draft.tree.length === 0 ? (
          <Empty title={t("tree.empty")} text={t(mayEdit ? "tree.emptyHelp" : "tree.emptyRead")}>
            {mayEdit && <Button onClick={() => begin("addTop")}>{t("edit.addTop")}</Button>}
          </Empty>
        ) : (
          <Tree
            tree={draft.tree}
            label={t("tree.label")}
            current={selected?.path ?? null}
            onCurrent={(branch) => select(branch.path)}
            onKey={pressed}
            trailing={(branch) => (
              <>
                {branch.grade && <Grade name={branch.grade} />}{" "}
                {changed.has(pathKey(branch.path)) && <span class={styles.changed}>{t("tree.changed")}</span>}
                {formatNumber(documentsIn(branch))}
              </>
            )}
          />
        )}
        {exposed.length > 0 && (
          <p class={styles.exposed} role="note">
            {t("grade.exposed", { lowest: grades.names[0] ?? "", branches: exposed.join(", ") })}
          </p>
        )}
        <p class={styles.hint}>{t(mayEdit ? "tree.keys" : "tree.readOnly")}</p>
      </section>
      <div class={styles.side}>
        <section class={styles.panel} aria-labelledby="taxonomy-selected">
          <h2 id="taxonomy-selected">{t("edit.title")}</h2>
          {selected ? <Selected branch={selected} /> : <p class={styles.hint}>{t("edit.none")}</p>}
          {mayEdit && (
            <div class={styles.actions}>
              {selected &&
                ON_CATEGORY.map((kind) => (
                  <Button
                    key={kind}
                    small
                    danger={kind === "remove"}
                    disabled={full}
                    aria-haspopup="dialog"
                    onClick={() => begin(kind)}
                  >
                    {t(`edit.${kind}`)}
                  </Button>
                ))}
              <Button small icon="plus" disabled={full} aria-haspopup="dialog" onClick={() => begin("addTop")}>
                {t("edit.addTop")}
              </Button>
            </div>
          )}
        </section>
        {mayEdit && <DraftPanel version={version} operations={operations} undone={undone} misfit={draft.misfit} />}
      </div>
      {action === "split" && selected && (
        <SplitDialog
          tree={draft.tree}
          path={selected.path}
          origins={draft.origins.get(pathKey(selected.path)) ?? []}
          onApply={add}
          onClose={() => setAction(null)}
        />
      )}
      {action && action !== "split" && (action === "addTop" || selected) && (
        <OperationDialog
          action={action}
          tree={draft.tree}
          path={action === "addTop" ? [] : (selected?.path ?? [])}
          grades={grades.names}
          onApply={add}
          onClose={() => setAction(null)}
        />
      )}
    </div>
  );
}

function Grade({ name }: { name: string }) {
  return (
    <Badge tone="accent">
      <span class="quiet">{t("grade.word")} </span>
      {name}
    </Badge>
  );
}

function Selected({ branch }: { branch: Branch }) {
  return (
    <>
      <p class={styles.path}>{pathText(branch.path)}</p>
      <p class={styles.hint}>{t("edit.documents", { n: documentsIn(branch) })}</p>
      {branch.grade && (
        <p class={styles.hint}>
          <Grade name={branch.grade} /> {t("grade.means", { grade: branch.grade })}
        </p>
      )}
      <a href={href("search", { query: { scope: formatPath(branch.path) } })}>{t("edit.search")}</a>
    </>
  );
}
