/** Passages with boxes to tick: those that answer the question. */
import type { TargetedFocusEvent } from "preact";
import { useState } from "preact/hooks";
import { Badge } from "../../parts/Badge";
import { Button } from "../../parts/Button";
import { pointsIn, slicePoints } from "../../parts/code-points";
import type { Passage } from "./items";
import { t } from "./text";
import styles from "./PassageList.module.css";

/** Code points of a passage that are shown at first. */
const SHORT = 320;

interface Props {
  passages: readonly Passage[];
  picked: readonly string[];
  /** Those whose text has changed since the page showed it. */
  changed?: readonly string[];
  /** No further passage can be picked. */
  full?: boolean;
  /** Left out: the passages are only shown. */
  onToggle?: (id: string) => void;
}

export function PassageList({ passages, picked, changed, full, onToggle }: Props) {
  return (
    <ul class={styles.list}>
      {passages.map((passage) => {
        const on = picked.includes(passage.id);
        return (
          <li
            key={passage.id}
            class={on ? styles.on : undefined}
            data-changed={changed?.includes(passage.id) ? "" : undefined}
          >
            <label class={styles.label}>
              <input
                type="checkbox"
                checked={on}
                disabled={!onToggle || (full && !on)}
                onChange={() => onToggle?.(passage.id)}
                onFocus={showWhole}
              />
              <span>{passage.label}</span>
              {passage.cited && <Badge>{t("passage.cited")}</Badge>}
              {changed?.includes(passage.id) && <Badge tone="warn">{t("passage.changed")}</Badge>}
            </label>
            <Text text={passage.text} />
          </li>
        );
      })}
    </ul>
  );
}

/** Reached by keyboard, a passage is wholly in view; under a pressed mouse button nothing moves. */
function showWhole({ currentTarget }: TargetedFocusEvent<HTMLInputElement>) {
  if (currentTarget.matches(":focus-visible")) currentTarget.closest("li")?.scrollIntoView({ block: "nearest" });
}

function Text({ text }: { text: string }) {
  const [whole, setWhole] = useState(false);
  const long = pointsIn(text) > SHORT * 1.25;
  return (
    <div class={styles.text}>
      <p>{whole || !long ? text : `${slicePoints(text, 0, SHORT)} …`}</p>
      {long && (
        <Button small kind="bare" aria-expanded={whole} onClick={() => setWhole(!whole)}>
          {t(whole ? "passage.less" : "passage.whole")}
        </Button>
      )}
    </div>
  );
}
