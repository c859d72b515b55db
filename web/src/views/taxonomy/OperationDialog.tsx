/** One change of a category: a name to type or a target to select. It goes into the draft, not to the service. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../../parts/Button";
import { branchAt, type Branch } from "../../parts/branches";
import { Dialog } from "../../parts/Dialog";
import { Field } from "../../parts/Field";
import { Tree } from "../../parts/Tree";
import { applied, type Operation, type Path } from "./operations";
import { misfitText, pathText } from "./sentences";
import { t } from "./text";
import styles from "./OperationDialog.module.css";

export type Action = "add" | "addTop" | "rename" | "move" | "merge" | "remove" | "grade";

interface Props {
  action: Action;
  tree: readonly Branch[];
  /** The category to change; for "add" the one above the new one. */
  path: Path;
  /** Names of the grades, the lowest first. */
  grades: readonly string[];
  onApply: (operation: Operation) => void;
  onClose: () => void;
}

export const LONGEST_NAME = 200;
const FORM = "taxonomy-operation";

export function OperationDialog({ action, tree, path, grades, onApply, onClose }: Props) {
  const named = action === "add" || action === "addTop" || action === "rename";
  /** What is typed, or the chosen grade. */
  const [name, setName] = useState(action === "rename" ? (path.at(-1) ?? "") : startGrade(action, tree, path));
  // null: nothing selected; for "remove" that is the parent.
  const [target, setTarget] = useState<Path | null>(null);
  const [error, setError] = useState("");
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    input.current?.focus();
    input.current?.select();
  }, []);

  function submit(event: Event) {
    event.preventDefault();
    const operation = operationOf(action, path, name.trim(), target);
    if (!operation) return setError(t("do.noTarget"));
    const { misfit } = applied(tree, [operation]);
    if (misfit) return setError(misfitText(misfit.error));
    onApply(operation);
  }
  function choose(chosen: Path | null) {
    setError("");
    setTarget(chosen);
  }

  return (
    <Dialog
      open
      title={t(`do.${action}`, { path: pathText(path) })}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t("do.cancel")}</Button>
          <Button kind="main" danger={action === "remove"} type="submit" form={FORM}>
            {t("do.apply")}
          </Button>
        </>
      }
    >
      <form id={FORM} class={styles.form} onSubmit={submit}>
        {named ? (
          <Field
            label={t("do.name")}
            value={name}
            error={error}
            inputRef={input}
            maxLength={LONGEST_NAME}
            autocomplete="off"
            onInput={(value) => {
              setError("");
              setName(value);
            }}
          />
        ) : action === "grade" ? (
          <>
            <label class={styles.grade}>
              {t("grade.word")}
              <select value={name} onChange={(event) => setName(event.currentTarget.value)}>
                <option value="">{t("grade.none")}</option>
                {grades.map((grade) => (
                  <option key={grade}>{grade}</option>
                ))}
              </select>
            </label>
            <p class={styles.hint}>{t("grade.rule")}</p>
          </>
        ) : (
          <>
            <Target action={action} tree={tree} path={path} target={target} onChoose={choose} />
            <p class={styles.error} role="alert">
              {error}
            </p>
          </>
        )}
      </form>
    </Dialog>
  );
}

const startGrade = (action: Action, tree: readonly Branch[], path: Path): string =>
  action === "grade" ? (branchAt(tree, path)?.grade ?? "") : "";

function operationOf(action: Action, path: Path, name: string, target: Path | null): Operation | null {
  if (action === "add" || action === "addTop") return { op: "add", path: [...path, name] };
  if (action === "grade") return { op: "grade", path, grade: name };
  if (action === "rename") return { op: "rename", path, name };
  if (action === "remove") return target ? { op: "delete", path, to: target } : { op: "delete", path };
  if (!target) return null;
  return action === "move" ? { op: "move", path, to: target } : { op: "merge", paths: [path], into: target };
}

interface TargetProps {
  action: Action;
  tree: readonly Branch[];
  path: Path;
  target: Path | null;
  onChoose: (target: Path | null) => void;
}

function Target({ action, tree, path, target, onChoose }: TargetProps) {
  const hint = action === "move" ? "do.moveHint" : action === "merge" ? "do.mergeHint" : "do.removeHint";
  const parent = path.slice(0, -1);
  const onParent = parent.length ? t("do.parent", { path: pathText(parent) }) : t("do.noCategory");
  const chosen = target === null ? (action === "remove" ? onParent : "–") : pathText(target) || t("do.top");
  return (
    <>
      <p class={styles.hint}>{t(hint)}</p>
      {action === "move" && path.length > 1 && (
        <Button aria-pressed={target?.length === 0} onClick={() => onChoose([])}>
          {t("do.top")}
        </Button>
      )}
      {action === "remove" && (
        <Button aria-pressed={target === null} onClick={() => onChoose(null)}>
          {onParent}
        </Button>
      )}
      <Tree
        tree={tree}
        label={t("do.target")}
        current={target}
        onCurrent={(branch) => onChoose(branch.path)}
        open={path.map((_, depth) => path.slice(0, depth))}
      />
      <p class={styles.chosen} role="status">
        {t("do.chosen", { path: chosen })}
      </p>
    </>
  );
}
