/** The only passage that an answer rests on, under the name of its article; it says what a list of one source would. */
import type { ComponentChildren } from "preact";
import { Quotation } from "../../parts/QuotedText";
import { languageOf } from "../../text/language";
import { address } from "./state";
import { t } from "./text";
import type { Source, Turn } from "./turn";
import styles from "./ArticleAnswer.module.css";

interface Props {
  turn: Turn;
  source: Source;
  /** The answer itself, where it is quoted; without it what the source quotes is shown. */
  children?: ComponentChildren;
}

/** The source of an answer that has exactly one, or the first of those in its only passage. */
export function onlySource({ answer, sources }: Turn): Source | undefined {
  return answer && (answer.passage || sources.length === 1) ? sources[0] : undefined;
}

export function ArticleAnswer({ turn, source, children }: Props) {
  const { label: name, page } = source;
  return (
    <section class={styles.article} aria-label={t("ask.source", { n: source.number, label: name })}>
      <p class={styles.name}>
        <a href={address.link({ source: `${turn.id}.${source.number}` })} lang={languageOf(name)}>
          {name}
        </a>
        {typeof page === "number" && !name.endsWith(`p. ${page}`) && <small>{t("source.page", { n: page })}</small>}
      </p>
      {children ?? (
        <div class={styles.text} lang={languageOf(source.quote)}>
          <Quotation source={source} />
        </div>
      )}
    </section>
  );
}
