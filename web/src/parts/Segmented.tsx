/** One of a few choices, as radio buttons in a row. */
import { useId } from "preact/hooks";
import styles from "./Segmented.module.css";

interface Props<T extends string> {
  label: string;
  value: T;
  choices: readonly { value: T; text: string; lang?: string }[];
  onChange: (value: T) => void;
}

export function Segmented<T extends string>({ label, value, choices, onChange }: Props<T>) {
  const name = useId();
  return (
    <fieldset class={styles.set}>
      <legend>{label}</legend>
      <div class={styles.row}>
        {choices.map((choice) => (
          <label key={choice.value} class={styles.choice} lang={choice.lang}>
            <input type="radio" name={name} checked={choice.value === value} onChange={() => onChange(choice.value)} />
            <span>{choice.text}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}
