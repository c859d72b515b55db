/** Numbers as bars and as numbers: a list of names and values, for the eye and for screen readers. */
import type { Tone } from "./Badge";
import styles from "./Bars.module.css";

export interface Bar {
  name: string;
  /** null: there is no such value. */
  value: number | null;
  /** The value at the full width; 1 when left out. */
  max?: number;
  /** The value in words; the number with three digits when left out. */
  text?: string;
  tone?: Tone;
}

export function Bars({ bars, label }: { bars: readonly Bar[]; label: string }) {
  return (
    <dl class={styles.bars} aria-label={label}>
      {bars.map((bar) => (
        <div key={bar.name} class={styles.row}>
          <dt>{bar.name}</dt>
          <dd>
            <Meter value={bar.value ?? 0} max={bar.max} tone={bar.tone} />
            <span>{bar.text ?? (bar.value === null ? "–" : bar.value.toFixed(3))}</span>
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** One bar without words; the text beside it must say the value. */
export function Meter({ value, max = 1, tone = "accent" }: { value: number; max?: number; tone?: Tone }) {
  const share = max > 0 ? Math.min(1, Math.max(0, value / max)) : 0;
  return (
    <span class={styles.meter} aria-hidden="true">
      <span class={`${styles.fill} ${styles[tone]}`} style={{ width: `${share * 100}%` }} />
    </span>
  );
}
