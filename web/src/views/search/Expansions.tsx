/** What the lexicon added to the query: words of the query, official words with weights, and the entry they are from. */
import type { components } from "../../api/schema";
import { t, type SearchKey } from "./text";
import styles from "./Expansions.module.css";

type Expansion = components["schemas"]["ExpansionShape"];

export function Expansions({ expansions }: { expansions: readonly Expansion[] }) {
  if (expansions.length === 0) return null;
  const added = new Set(expansions.flatMap((expansion) => expansion.official.map((term) => term.text)));
  return (
    <details class={styles.expansions}>
      <summary>{t("lexicon.title", { words: [...added].join(", ") })}</summary>
      <p class={styles.help}>{t("lexicon.help")}</p>
      <ul>
        {expansions.map((expansion, index) => (
          <li key={index}>
            <p class={styles.words}>
              <strong lang="ko">{expansion.words.join(" ")}</strong>
              <span aria-hidden="true">→</span>
              <span class="quiet">{t("lexicon.becomes")}</span>
              {expansion.official.map((term) => (
                <span key={term.text} class={styles.term}>
                  <span lang="ko">{term.text}</span> <span class={styles.weight}>{term.weight.toFixed(2)}</span>
                </span>
              ))}
            </p>
            <p class={styles.entry}>
              {t(expansion.field === "own" ? "lexicon.own" : "lexicon.entry", {
                form: expansion.form,
                field: expansion.field,
              })}
              {expansion.matched_by !== "words" && ` ${t(`lexicon.${expansion.matched_by}` satisfies SearchKey)}`}
            </p>
          </li>
        ))}
      </ul>
    </details>
  );
}
