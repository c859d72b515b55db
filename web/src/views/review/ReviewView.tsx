/** Review queue: what the machine was unsure about, least confident first, and a person's decision about each. */
import { useEffect, useRef, useState } from "preact/hooks";
import { useResource } from "../../state/resource";
import { useShortcuts } from "../../state/shortcuts";
import { useMedia } from "../../state/use-media";
import { api } from "../../api/client";
import { Button } from "../../parts/Button";
import { Page } from "../../parts/Page";
import { Empty, Loaded } from "../../parts/States";
import { ItemPanel } from "./ItemPanel";
import { following, neighbour, type Item } from "./items";
import { toggled } from "./many";
import { Queue } from "./Queue";
import { address, go, linkTo, openItem, PAGE } from "./state";
import { t } from "./text";
import styles from "./ReviewView.module.css";

export default function ReviewView() {
  const wide = useMedia("(min-width: 60rem)");
  const { from } = address.read();
  const queue = useResource(
    (signal) => api.get("/review", { query: { limit: PAGE, offset: Math.max(0, from) }, signal }),
    [from],
  );
  /** Decided here: the list may still have them until it is read again. */
  const done = useRef(new Set<string>());
  const items = (queue.data?.items ?? []).filter((item) => !done.current.has(item.item_id));
  const chosen = openItem();
  // Beside the list there is always an item; on a small screen the list comes first.
  const current = chosen ?? (wide ? items[0]?.item_id : undefined);
  /** Whether the reader moved, so that the focus follows to the item. */
  const moved = useRef(false);
  const open = (item: Item | undefined) => {
    if (!item) return;
    moved.current = true;
    go(item.item_id, { replace: true });
  };
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set());
  useShortcuts([
    { keys: "t", label: () => t("many.tickKey"), run: () => current && setTicked(toggled(ticked, [current], current)) },
    { keys: "j", label: () => t("review.next"), run: () => open(neighbour(items, current, 1)) },
    { keys: "k", label: () => t("review.previous"), run: () => open(neighbour(items, current, -1)) },
  ]);
  const decided = (id: string) => {
    const next = following(items, id);
    done.current.add(id);
    moved.current = true;
    go(next?.item_id ?? null, { replace: true });
    queue.reload();
  };
  const decidedMany = (ids: readonly string[]) => {
    for (const id of ids) done.current.add(id);
    setTicked(new Set([...ticked].filter((id) => !ids.includes(id))));
    if (current && ids.includes(current)) go(null, { replace: true });
    queue.reload();
  };
  const emptied = queue.data?.total === 0 && !chosen;
  useEffect(() => {
    if (!emptied || !moved.current) return;
    moved.current = false;
    document.getElementById("main")?.focus();
  }, [emptied]);
  const alone = !wide && chosen;
  return (
    <Page title={t("review.title")} lead={alone ? undefined : t("review.lead")}>
      {alone && (
        <p>
          <a href={linkTo(null)}>{t("review.back")}</a>
        </p>
      )}
      <Loaded resource={queue} lines={8}>
        {(page) =>
          page.total === 0 && !chosen ? (
            <Empty title={t("review.empty")} text={t("review.emptyHelp")}>
              <Button icon="retry" onClick={queue.reload}>
                {t("review.check")}
              </Button>
            </Empty>
          ) : (
            <div class={styles.columns}>
              {!alone && page.total > 0 && (
                <Queue page={page} current={current} ticked={ticked} onTick={setTicked} onDecided={decidedMany} />
              )}
              {current && (
                <ItemPanel
                  key={current}
                  id={current}
                  takeFocus={moved}
                  onDecided={() => decided(current)}
                  onStale={queue.reload}
                />
              )}
            </div>
          )
        }
      </Loaded>
    </Page>
  );
}
