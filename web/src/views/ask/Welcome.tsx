/** Before the first question: how many documents answer it, or that there are none yet. */
import { useResource } from "../../state/resource";
import { href } from "../../state/router";
import { mayOpen } from "../../state/session";
import { api } from "../../api/client";
import { t } from "./text";
import styles from "./Welcome.module.css";

export function Welcome() {
  const page = useResource((signal) => api.get("/documents", { query: { limit: 1 }, signal }), []);
  const documents = page.data?.total.documents;
  return (
    <header class={styles.welcome}>
      <h1>{t("ask.title")}</h1>
      <p>{t("ask.lead")}</p>
      {documents === 0 && <p>{t("ask.noDocuments")}</p>}
      {documents === 0 && mayOpen("documents") && <a href={href("documents")}>{t("ask.addDocuments")}</a>}
      {documents !== undefined && documents > 0 && <p class={styles.count}>{t("ask.documents", { n: documents })}</p>}
    </header>
  );
}
