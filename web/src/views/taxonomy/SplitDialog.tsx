/** The split of a category into new ones below it: their names, and which documents go where. */
import { useEffect, useRef, useState } from "preact/hooks";
import { announce } from "../../state/announce";
import { Button } from "../../parts/Button";
import type { Branch } from "../../parts/branches";
import { Dialog } from "../../parts/Dialog";
import { Field } from "../../parts/Field";
import { LONGEST_NAME } from "./OperationDialog";
import { applied, type Operation, type Path } from "./operations";
import { PickDocuments } from "./PickDocuments";
import { misfitText, pathText } from "./sentences";
import { MOST_PARTS, splitFrom, tooManyKeywords, type PartForm, type Pick } from "./split";
import { t } from "./text";
import styles from "./SplitDialog.module.css";

interface Props {
  tree: readonly Branch[];
  path: Path;
  /** Active categories whose documents are in the category. */
  origins: readonly Path[];
  onApply: (operation: Operation) => void;
  onClose: () => void;
}

const FORM = "taxonomy-split";
const emptyPart = (id: number): PartForm => ({ id, name: "", keywords: "" });

export function SplitDialog({ tree, path, origins, onApply, onClose }: Props) {
  const [parts, setParts] = useState([emptyPart(1), emptyPart(2)]);
  const [picks, setPicks] = useState<Pick[]>([]);
  const [error, setError] = useState("");
  const newest = useRef<HTMLInputElement>(null);
  // The first name at first; later that of the part that was added.
  const [focused, setFocused] = useState(1);
  useEffect(() => newest.current?.focus(), [focused]);

  const typed = parts.some((part) => part.name || part.keywords) || picks.length > 0;
  function change(id: number, values: Partial<PartForm>) {
    setError("");
    setParts(parts.map((part) => (part.id === id ? { ...part, ...values } : part)));
  }
  function addPart() {
    const id = Math.max(...parts.map((part) => part.id)) + 1;
    setParts([...parts, emptyPart(id)]);
    setFocused(id);
  }
  function removePart(id: number) {
    const left = parts.filter((part) => part.id !== id);
    setParts(left);
    setPicks(picks.filter((pick) => pick.part !== id));
    setFocused(left.at(-1)?.id ?? 0);
    announce(t("split.removed"));
  }
  function pick(document: string, title: string, part: number | null) {
    const others = picks.filter((other) => other.document !== document);
    setPicks(part === null ? others : [...others, { document, title, part }]);
  }
  function submit(event: Event) {
    event.preventDefault();
    const operation = splitFrom(path, parts, picks);
    if (operation.into.length === 0) return setError(t("split.noPart"));
    if (parts.some((part) => tooManyKeywords(part.keywords))) return setError(t("split.manyKeywords"));
    const { misfit } = applied(tree, [operation]);
    if (misfit) return setError(misfitText(misfit.error));
    onApply(operation);
  }

  return (
    <Dialog
      open
      shape="wide"
      onlyButtonsClose={typed}
      title={t("do.split", { path: pathText(path) })}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t("do.cancel")}</Button>
          <Button kind="main" type="submit" form={FORM}>
            {t("do.apply")}
          </Button>
        </>
      }
    >
      <div class={styles.split}>
        <p class={styles.hint}>{t("split.rule", { path: path.at(-1) ?? "" })}</p>
        <form id={FORM} class={styles.parts} onSubmit={submit}>
          {parts.map((part, index) => (
            <fieldset key={part.id} class={styles.part}>
              <legend>{t("split.part", { n: index + 1 })}</legend>
              <Field
                label={t("do.name")}
                value={part.name}
                maxLength={LONGEST_NAME}
                autocomplete="off"
                {...(part.id === focused && { inputRef: newest })}
                onInput={(name) => change(part.id, { name })}
              />
              <Field
                label={t("split.keywords")}
                value={part.keywords}
                placeholder={t("split.keywordsExample")}
                autocomplete="off"
                onInput={(keywords) => change(part.id, { keywords })}
              />
              {parts.length > 1 && (
                <Button
                  kind="bare"
                  icon="close"
                  label={t("split.remove", { n: index + 1 })}
                  onClick={() => removePart(part.id)}
                />
              )}
              <Picked
                picks={picks.filter((one) => one.part === part.id)}
                onRemove={(one) => pick(one.document, "", null)}
              />
            </fieldset>
          ))}
          <Button icon="plus" disabled={parts.length >= MOST_PARTS} onClick={addPart}>
            {t("split.add")}
          </Button>
        </form>
        <p class={styles.error} role="alert">
          {error}
        </p>
        {origins.length > 0 && <PickDocuments origins={origins} parts={parts} picks={picks} onPick={pick} />}
      </div>
    </Dialog>
  );
}

function Picked({ picks, onRemove }: { picks: readonly Pick[]; onRemove: (pick: Pick) => void }) {
  if (picks.length === 0) return null;
  return (
    <ul class={styles.picked}>
      {picks.map((pick) => (
        <li key={pick.document}>
          <span>{pick.title}</span>
          <Button
            kind="bare"
            small
            icon="close"
            label={t("split.unpick", { title: pick.title })}
            onClick={() => onRemove(pick)}
          />
        </li>
      ))}
    </ul>
  );
}
