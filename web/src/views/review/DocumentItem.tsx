/** A document whose category is uncertain: a person accepts the proposed one, or picks another. */
import { useState } from "preact/hooks";
import { pathText } from "../../text/path-text";
import { href } from "../../state/router";
import { useShortcuts } from "../../state/shortcuts";
import { api } from "../../api/client";
import { Badge } from "../../parts/Badge";
import { Button } from "../../parts/Button";
import { CategoryDialog } from "../../parts/moving/CategoryDialog";
import { formatPercent } from "../../text/texts";
import { Decisions, Reasons } from "./Decisions";
import { categoryOf, type Deciding } from "./items";
import { t } from "./text";
import styles from "./DocumentItem.module.css";

export function DocumentItem({ item, onDecided, onStale }: Deciding) {
  const { path, reasons, alternatives, disagreeing } = categoryOf(item);
  const [choosing, setChoosing] = useState(false);
  const waiting = item.status === "waiting";
  useShortcuts(waiting ? [{ keys: "c", label: () => t("document.choose"), run: () => setChoosing(true) }] : []);
  return (
    <>
      {item.document_id && (
        <p>
          <a href={href("documents", { path: [item.document_id] })}>{t("document.open")}</a>
        </p>
      )}
      <section class={styles.section}>
        <h3>{t(waiting ? "document.proposed" : "document.category")}</h3>
        <p class={styles.path}>
          {path.length > 0 ? pathText(path) : t("document.none")}
          {disagreeing && <Badge tone="warn">{t("document.disagreeing")}</Badge>}
        </p>
        {alternatives.length > 0 && (
          <>
            <h4 class={styles.small}>{t("document.alternatives")}</h4>
            <ul class={styles.small}>
              {alternatives.map((other) => (
                <li key={other.path.join("/")}>
                  {pathText(other.path)} · {formatPercent(other.confidence)}
                </li>
              ))}
            </ul>
          </>
        )}
      </section>
      <Reasons reasons={reasons} />
      {waiting && (
        <Decisions
          item={item}
          onDecided={onDecided}
          onStale={onStale}
          correct={(note, decide) => (
            <>
              <Button aria-haspopup="dialog" onClick={() => setChoosing(true)}>
                {t("document.choose")}
              </Button>
              <CategoryDialog
                open={choosing}
                alternatives={alternatives.map((other) => other.path)}
                onClose={() => setChoosing(false)}
                onChoose={(category) => {
                  setChoosing(false);
                  decide("corrected", () =>
                    api.post("/review/{item_id}/correct", {
                      path: { item_id: item.item_id },
                      body: { note, path: [...category] },
                    }),
                  );
                }}
              />
            </>
          )}
        />
      )}
    </>
  );
}
