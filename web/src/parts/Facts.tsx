/** Names with their values, in columns. */
import type { ComponentChildren } from "preact";
import styles from "./Facts.module.css";

interface Props {
  facts: readonly (readonly [string, ComponentChildren])[];
  /** The last value is long and has a line of its own. */
  wideLast?: boolean;
}

export function Facts({ facts, wideLast }: Props) {
  return (
    <dl class={styles.facts}>
      {facts.map(([name, value], at) => (
        <div key={at} class={wideLast && at === facts.length - 1 ? styles.wide : undefined}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
