/** A labelled choice among many. */
import { useId } from "preact/hooks";
import styles from "./Evaluation.module.css";

interface Props {
  label: string;
  value: string;
  choices: readonly { value: string; text: string }[];
  onChange: (value: string) => void;
}

export function Select({ label, value, choices, onChange }: Props) {
  const id = useId();
  return (
    <div class={styles.choice}>
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {choices.map((choice) => (
          <option key={choice.value} value={choice.value}>
            {choice.text}
          </option>
        ))}
      </select>
    </div>
  );
}
