/** The list of sources below an answer. */
import { address } from "./state";
import { t } from "./text";
import type { Turn } from "./turns";
import styles from "./Sources.module.css";

export function Sources({ turn }: { turn: Turn }) {
  return (
    <section class={styles.sources} aria-label={t("ask.sources")}>
      <ol>
        {turn.sources.map((source) => (
          <li key={source.number}>
            <a href={address.link({ source: `${turn.id}.${source.number}` })}>
              <span class={styles.number}>{source.number}</span>
              <span>{source.label}</span>
            </a>
          </li>
        ))}
      </ol>
    </section>
  );
}
