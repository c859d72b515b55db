/** The documents behind an answer with the passages that it used, by their titles; those that were deleted since said so. */
import { Badge } from "../../parts/Badge";
import { href } from "../../state/router";
import { t } from "./text";
import { deletedName } from "./titles";
import type { Trace } from "./trace-facts";
import styles from "./Calls.module.css";

export function Documents({ trace }: { trace: Pick<Trace, "document_ids" | "titles" | "passages"> }) {
  const { document_ids: ids, titles, passages } = trace;
  if (ids.length === 0) return <p class={styles.none}>{t("documents.none")}</p>;
  return (
    <ul class={styles.documents}>
      {ids.map((id) => {
        const title = titles[id];
        const used = passages.filter((each) => each.document_id === id && each.label);
        return (
          <li key={id}>
            {title === undefined ? deletedName(id) : <a href={href("documents", { path: [id] })}>{title}</a>}
            {used.length > 0 && (
              <ul class={styles.passages}>
                {used.map(({ label, cited }, at) => (
                  <li key={at}>
                    {placeIn(label ?? "", title ?? "")} {cited && <Badge tone="accent">{t("documents.cited")}</Badge>}
                  </li>
                ))}
              </ul>
            )}
          </li>
        );
      })}
    </ul>
  );
}

/** The label of a passage without the title of its document before it. */
const placeIn = (label: string, title: string): string =>
  (label.startsWith(title) && label.slice(title.length).replace(/^,? /, "")) || label;
