/** An existing category or a new one; the existing ones are suggested. */
import { useId } from "preact/hooks";
import { formatPath } from "../../state/query";
import { useResource } from "../../state/resource";
import { api } from "../../api/client";
import type { Branch } from "../../parts/branches";
import { t } from "./text";
import styles from "./UploadPanel.module.css";

interface Props {
  value: string;
  required: boolean;
  error: string | undefined;
  onInput: (value: string) => void;
}

export function CategoryField({ value, required, error, onInput }: Props) {
  const id = useId();
  const tree = useResource(
    (signal) => api.get("/taxonomy/{version}/tree", { path: { version: "active" }, signal }),
    [],
  );
  return (
    <div class={styles.category}>
      <label for={id}>{t("upload.category")}</label>
      <input
        id={id}
        list={`${id}-known`}
        value={value}
        autocomplete="off"
        required={required}
        aria-describedby={`${id}-hint`}
        aria-invalid={error ? "true" : undefined}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      <datalist id={`${id}-known`}>
        {pathsOf(tree.data?.tree ?? []).map((path) => (
          <option key={path} value={path} />
        ))}
      </datalist>
      <p id={`${id}-hint`} class={error ? styles.error : styles.kinds} role={error ? "alert" : undefined}>
        {error ?? t(required ? "upload.categoryNeeded" : "upload.categoryHint")}
      </p>
    </div>
  );
}

function pathsOf(tree: readonly Branch[]): string[] {
  return tree.flatMap((branch) => [formatPath(branch.path), ...pathsOf(branch.children)]);
}
