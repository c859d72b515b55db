/** A passage of a case, with the text that it has today. */
import { pathText } from "../../text/path-text";
import { useResource } from "../../state/resource";
import { href } from "../../state/router";
import { api } from "../../api/client";
import { Badge } from "../../parts/Badge";
import { Failure, Loading } from "../../parts/States";
import { placeOf } from "./state";
import { t } from "./text";
import styles from "./CasePassage.module.css";

interface Shown {
  document: string;
  headings: string[];
  start: number;
  end: number;
  text: string;
}

/** null: the document has no passage at this place any more. */
async function load(id: string, signal: AbortSignal): Promise<Shown | null> {
  const place = placeOf(id);
  if (!place) return null;
  const path = { document_id: place.document };
  const list = await api.get("/documents/{document_id}/passages", {
    path,
    query: { offset: place.ordinal, limit: 1 },
    signal,
  });
  const passage = list.passages[0];
  if (passage?.chunk_id !== id) return null;
  const { start, end, breadcrumb } = passage;
  const part = await api.get("/documents/{document_id}/text", { path, query: { start, end }, signal });
  return { document: place.document, headings: breadcrumb, start, end, text: part.text };
}

export function CasePassage({ id, changed }: { id: string; changed: boolean }) {
  const resource = useResource((signal) => load(id, signal), [id]);
  const { data, problem } = resource;
  if (problem && problem.kind !== "missing") return <Failure problem={problem} onRetry={resource.reload} />;
  if (!problem && data === undefined) return <Loading lines={2} />;
  if (problem || !data) {
    return (
      <p class={styles.gone}>
        <Badge tone="warn">{t("passage.gone")}</Badge> <code>{id}</code>
      </p>
    );
  }
  const title = pathText(data.headings) || id;
  return (
    <div class={styles.passage}>
      <p class={styles.title}>
        <a href={href("documents", { path: [data.document], query: { passage: `${data.start}-${data.end}` } })}>
          {title}
        </a>{" "}
        {changed && <Badge tone="warn">{t("passage.changed")}</Badge>}
      </p>
      <p class={styles.text}>{data.text}</p>
    </div>
  );
}
