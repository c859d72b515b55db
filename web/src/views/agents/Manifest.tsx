/** A manifest as JSON, to read and to copy. */
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
      <p>
        <CopyButton small={false} text={text} label={t("manifest.copy")} />
      </p>
    </div>
  );
}
