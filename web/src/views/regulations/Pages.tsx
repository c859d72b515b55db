/** Links to the page before and after. */
import { address, PAGE } from "./state";
import { t } from "./text";
import styles from "./Regulations.module.css";

/** `size`: how many a page has. */
export function Pages({ total, size = PAGE }: { total: number; size?: number }) {
  const { offset } = address.read();
  const last = Math.min(offset + size, total);
  if (total <= size && offset === 0) return null;
  return (
    <nav class={styles.pages} aria-label={t("pages.label")}>
      {offset > 0 && <a href={address.link({ offset: Math.max(0, offset - size) })}>{t("pages.before")}</a>}
      <span>{t("pages.shown", { from: offset + 1, to: last, n: total })}</span>
      {last < total && <a href={address.link({ offset: offset + size })}>{t("pages.next")}</a>}
    </nav>
  );
}
