/** The documents behind an answer, by their outermost heading where there is one. */
import { useResource } from "../../app/resource";
import { href } from "../../app/router";
import { api } from "../../api/client";
import { t } from "./text";
import styles from "./Calls.module.css";

/** Names of more documents are not requested; they are shown by their ids. */
const NAMED = 10;

export function Documents({ ids }: { ids: readonly string[] }) {
  const names = useResource(
    ids.length > 0 ? (signal) => Promise.all(ids.slice(0, NAMED).map((id) => headingOf(id, signal))) : null,
    [ids.join()],
  );
  if (ids.length === 0) return <p class={styles.none}>{t("documents.none")}</p>;
  return (
    <ul class={styles.documents}>
      {ids.map((id, index) => (
        <li key={id}>
          <a href={href("documents", { path: [id] })}>{names.data?.[index] || <code>{id}</code>}</a>
        </li>
      ))}
    </ul>
  );
}

async function headingOf(id: string, signal: AbortSignal): Promise<string> {
  const page = await api.get("/documents/{document_id}/passages", {
    path: { document_id: id },
    query: { limit: 1 },
    signal,
  });
  return page.passages[0]?.breadcrumb[0] ?? "";
}
