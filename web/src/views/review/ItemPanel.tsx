/** One item: what it is about, what is proposed and why, and the decision. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { RefObject } from "preact";
import { useResource } from "../../state/resource";
import { api } from "../../api/client";
import { Badge } from "../../parts/Badge";
import { Loaded } from "../../parts/States";
import { formatDateTime, formatPercent } from "../../text/texts";
import { AnswerItem } from "./AnswerItem";
import { DocumentItem } from "./DocumentItem";
import { titleOf, type Item } from "./items";
import { t } from "./text";
import styles from "./ItemPanel.module.css";

interface Props {
  id: string;
  /** True when the reader came here from another item. */
  takeFocus: RefObject<boolean>;
  onDecided: () => void;
  onStale: () => void;
}

export function ItemPanel({ id, takeFocus, onDecided, onStale }: Props) {
  const [added, setAdded] = useState<readonly string[]>([]);
  const item = useResource(
    (signal) => api.get("/review/{item_id}", { path: { item_id: id }, query: { passage: [...added] }, signal }),
    [id, added.join(" ")],
  );
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (!item.data || !takeFocus.current) return;
    takeFocus.current = false;
    heading.current?.focus();
    heading.current?.scrollIntoView({ block: "nearest" });
  }, [item.data]);
  const stale = () => {
    item.reload();
    onStale();
  };
  return (
    <div class={styles.panel}>
      <Loaded resource={item} lines={6}>
        {(shown) => (
          <article class={styles.item} aria-labelledby="item-title">
            <header class={styles.header}>
              <p class={styles.kind}>{t(`kind.${shown.kind}`)}</p>
              <h2 id="item-title" class={styles.title} ref={heading} tabIndex={-1}>
                {titleOf(shown) || t("item.untitled")}
              </h2>
              <Facts item={shown} />
              {shown.note && <p class={styles.note}>{t("item.note", { note: shown.note })}</p>}
            </header>
            {shown.kind === "answer" ? (
              <AnswerItem
                item={shown}
                added={added}
                loading={item.loading}
                onAdd={(passage) => setAdded([...added, passage])}
                onDecided={onDecided}
                onStale={stale}
              />
            ) : (
              <DocumentItem item={shown} onDecided={onDecided} onStale={stale} />
            )}
          </article>
        )}
      </Loaded>
    </div>
  );
}

const TONES = { waiting: "warn", approved: "good", corrected: "accent", skipped: "neutral" } as const;

function Facts({ item }: { item: Item }) {
  return (
    <p class={styles.facts}>
      <Badge tone={TONES[item.status]}>{t(`status.${item.status}`)}</Badge>
      {item.confidence !== null && <span>{t(`sure.${item.kind}`, { share: formatPercent(item.confidence) })}</span>}
      <span>{t("item.since", { time: formatDateTime(item.created_at) })}</span>
      {item.decided_at && (
        <span>{t("item.decided", { name: item.decided_by, time: formatDateTime(item.decided_at) })}</span>
      )}
    </p>
  );
}
