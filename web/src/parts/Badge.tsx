import type { ComponentChildren } from "preact";
import styles from "./Badge.module.css";

export type Tone = "neutral" | "good" | "warn" | "bad" | "accent";

/** A short state; the colour only repeats what the words say. */
export function Badge({ tone = "neutral", children }: { tone?: Tone; children: ComponentChildren }) {
  return <span class={`${styles.badge} ${styles[tone]}`}>{children}</span>;
}
