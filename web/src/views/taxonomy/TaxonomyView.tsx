/** The category tree: its draft, its versions, and what a version would change. */
import { href, route } from "../../state/router";
import { mayWholeTreeAs } from "../../state/session";
import { Page } from "../../parts/Page";
import { Editor } from "./Editor";
import { VersionPage } from "./VersionPage";
import { Versions } from "./Versions";
import { t } from "./text";
import styles from "./TaxonomyView.module.css";

export default function TaxonomyView() {
  const [part, version] = route.value.path;
  const versions = part === "versions";
  return (
    <Page title={t("view.title")} lead={t(mayWholeTreeAs("admin") ? "view.lead" : "view.leadRead")}>
      {mayWholeTreeAs("reader") && (
        <nav class={styles.tabs} aria-label={t("tab.label")}>
          <a href={href("taxonomy")} aria-current={versions ? undefined : "page"}>
            {t("tab.tree")}
          </a>
          <a href={href("taxonomy", { path: ["versions"] })} aria-current={versions ? "page" : undefined}>
            {t("tab.versions")}
          </a>
        </nav>
      )}
      {!versions ? <Editor /> : version ? <VersionPage key={version} version={version} /> : <Versions />}
    </Page>
  );
}
