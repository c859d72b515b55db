/** A manifest as JSON, to read, to copy and to save. */
import { saveAs } from "../../state/save-as";
import { Button } from "../../parts/Button";
import { CopyButton } from "../../parts/CopyButton";
import { t } from "./text";
import styles from "./Agents.module.css";

export function Manifest({ value, label }: { value: object; label: string }) {
  const text = JSON.stringify(value, null, 2);
  return (
    <div class={styles.form}>
      <pre class={styles.manifest} tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
      <p class={styles.row}>
        <CopyButton small={false} text={text} label={t("manifest.copy")} />
        <Button icon="down" onClick={() => saveAs(fileName(value), text, "application/json")}>
          {t("manifest.save")}
        </Button>
      </p>
    </div>
  );
}

function fileName(manifest: object): string {
  const name = "name" in manifest ? String(manifest.name) : "";
  return `${name.replace(/[^\p{L}\p{N}.-]+/gu, "-") || "agent"}.json`;
}
