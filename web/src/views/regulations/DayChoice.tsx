/** One of the days on which an edition became valid. */
import styles from "./Regulations.module.css";

interface Props {
  label: string;
  value: string;
  days: readonly string[];
  textOf: (day: string) => string;
  onChange: (day: string) => void;
}

export function DayChoice({ label, value, days, textOf, onChange }: Props) {
  return (
    <label class={styles.choice}>
      <span>{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {days.map((day) => (
          <option key={day} value={day}>
            {textOf(day)}
          </option>
        ))}
      </select>
    </label>
  );
}
