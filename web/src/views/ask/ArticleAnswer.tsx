/** The only passage that an answer rests on, under the name of its article; it says what a list of one source would. */
import type { ComponentChildren } from "preact";
import { Quotation } from "../../parts/QuotedText";
import { languageOf } from "../../text/language";
import { sourceName } from "./source-name";
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

/** The source of an answer that has exactly one. */
export function onlySource({ answer, sources }: Turn): Source | undefined {
  return answer && sources.length === 1 ? sources[0] : undefined;
}

export function ArticleAnswer({ turn, source, children }: Props) {
  const name = sourceName(turn, source);
  return (
    <section class={styles.article} aria-label={t("ask.source", { n: source.number, label: name })}>
      <p class={styles.name}>
        <a href={address.link({ source: `${turn.id}.${source.number}` })} lang={languageOf(name)}>
          {name}
        </a>
      </p>
      {children ?? (
        <div class={styles.text} lang={languageOf(source.quote)}>
          <Quotation source={source} />
        </div>
      )}
    </section>
  );
}
