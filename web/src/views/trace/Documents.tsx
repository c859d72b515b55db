/** The documents behind an answer, by their titles; those that were deleted since by their ids. */
import { href } from "../../state/router";
import { t } from "./text";
import type { Trace } from "./trace-facts";
import styles from "./Calls.module.css";

export function Documents({ trace }: { trace: Pick<Trace, "document_ids" | "titles"> }) {
  const ids = trace.document_ids;
  if (ids.length === 0) return <p class={styles.none}>{t("documents.none")}</p>;
  return (
    <ul class={styles.documents}>
      {ids.map((id) => (
        <li key={id}>
          <a href={href("documents", { path: [id] })}>{trace.titles[id] || <code>{id}</code>}</a>
        </li>
      ))}
    </ul>
  );
}
