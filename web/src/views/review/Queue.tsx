/** The list of waiting items. */
import { useRef } from "preact/hooks";
import type { components } from "../../api/schema";
import { Meter } from "../../parts/Bars";
import { formatPercent } from "../../text/texts";
import { DecideMany } from "./DecideMany";
import { titleOf, type Item } from "./items";
import { toggled } from "./many";
import { address, linkTo, PAGE } from "./state";
import { t } from "./text";
import styles from "./Queue.module.css";

type ItemPage = components["schemas"]["ItemList"];

interface Props {
  page: ItemPage;
  current: string | undefined;
  ticked: ReadonlySet<string>;
  onTick: (ticked: ReadonlySet<string>) => void;
  onDecided: (ids: readonly string[]) => void;
}

export function Queue({ page, current, ticked, onTick, onDecided }: Props) {
  const from = useRef<number | undefined>(undefined);
  const tick = (row: number, through: boolean) => {
    const first = through && from.current !== undefined ? from.current : row;
    from.current = row;
    const ids = page.items.slice(Math.min(first, row), Math.max(first, row) + 1).map((item) => item.item_id);
    onTick(toggled(ticked, ids, page.items[row]?.item_id ?? ""));
  };
  const last = page.offset + page.items.length;
  return (
    <section class={styles.queue} aria-labelledby="queue-title">
      <h2 id="queue-title">{t("queue.title", { n: page.total })}</h2>
      {page.items.length > 1 && <DecideMany items={page.items} ticked={ticked} onTick={onTick} onDecided={onDecided} />}
      <ol class={styles.list}>
        {page.items.map((item, row) => (
          <li key={item.item_id}>
            <label class={styles.tick}>
              <input
                type="checkbox"
                aria-label={t("many.tick", { title: titleOf(item) || t("item.untitled") })}
                checked={ticked.has(item.item_id)}
                onClick={(event) => tick(row, event.shiftKey)}
              />
            </label>
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
            {t(`sure.${item.kind}`, { share: formatPercent(item.confidence) })}
          </span>
        )}
      </span>
    </a>
  );
}
