/** Links to the page before and after. */
import { address, PAGE } from "./state";
import { t } from "./text";
import styles from "./Regulations.module.css";

export function Pages({ total }: { total: number }) {
  const { offset } = address.read();
  const last = Math.min(offset + PAGE, total);
  if (total <= PAGE && offset === 0) return null;
  return (
    <nav class={styles.pages} aria-label={t("pages.label")}>
      {offset > 0 && <a href={address.link({ offset: Math.max(0, offset - PAGE) })}>{t("pages.before")}</a>}
      <span>{t("pages.shown", { from: offset + 1, to: last, n: total })}</span>
      {last < total && <a href={address.link({ offset: offset + PAGE })}>{t("pages.next")}</a>}
    </nav>
  );
}
