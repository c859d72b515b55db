/** The list of waiting items. */
import type { components } from "../../api/schema";
import { Meter } from "../../parts/Bars";
import { formatPercent } from "../../text/texts";
import { titleOf, type Item } from "./items";
import { address, linkTo, PAGE } from "./state";
import { t } from "./text";
import styles from "./Queue.module.css";

type ItemPage = components["schemas"]["ItemList"];

export function Queue({ page, current }: { page: ItemPage; current: string | undefined }) {
  const last = page.offset + page.items.length;
  return (
    <section class={styles.queue} aria-labelledby="queue-title">
      <h2 id="queue-title">{t("queue.title", { n: page.total })}</h2>
      <ol class={styles.list}>
        {page.items.map((item) => (
          <li key={item.item_id}>
            <Line item={item} current={item.item_id === current} />
          </li>
        ))}
      </ol>
      {page.total > page.items.length && (
        <nav class={styles.pages} aria-label={t("queue.pages")}>
          {page.offset > 0 && (
            <a href={address.link({ from: Math.max(0, page.offset - PAGE) }, "review", [])}>{t("queue.before")}</a>
          )}
          <span>{t("queue.range", { first: page.offset + 1, last, total: page.total })}</span>
          {last < page.total && (
            <a href={address.link({ from: page.offset + PAGE }, "review", [])}>{t("queue.after")}</a>
          )}
        </nav>
      )}
    </section>
  );
}

function Line({ item, current }: { item: Item; current: boolean }) {
  return (
    <a class={styles.line} href={linkTo(item.item_id)} aria-current={current ? "true" : undefined}>
      <span class={styles.title}>{titleOf(item) || t("item.untitled")}</span>
      <span class={styles.facts}>
        <span>{t(`kind.${item.kind}`)}</span>
        {item.confidence !== null && (
          <span class={styles.confidence}>
            <Meter value={item.confidence} />
            {t("queue.confidence", { share: formatPercent(item.confidence) })}
          </span>
        )}
      </span>
    </a>
  );
}
