/** The list of sources below an answer. */
import { sourceNames } from "./source-name";
import { address } from "./state";
import { t } from "./text";
import type { Turn } from "./turn";
import styles from "./Sources.module.css";

export function Sources({ turn }: { turn: Turn }) {
  const names = sourceNames(turn);
  return (
    <section class={styles.sources} aria-label={t("ask.sources")}>
      <ol>
        {turn.sources.map((source, at) => (
          <li key={source.number}>
            <a href={address.link({ source: `${turn.id}.${source.number}` })}>
              <span class={styles.number}>{source.number}</span>
              <span>{names[at]}</span>
            </a>
          </li>
        ))}
      </ol>
    </section>
  );
}
