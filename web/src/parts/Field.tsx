/** A labelled input with a hint and an error that screen readers connect to it. */
import type { InputHTMLAttributes, Ref } from "preact";
import { useId } from "preact/hooks";
import styles from "./Field.module.css";

interface Props {
  label: string;
  hideLabel?: boolean;
  hint?: string;
  error?: string;
  type?: "text" | "search" | "password" | "date" | "number";
  value?: string;
  placeholder?: string;
  autocomplete?: "off" | "current-password";
  min?: string;
  max?: string;
  maxLength?: number;
  inputRef?: Ref<HTMLInputElement>;
  onInput?: (value: string) => void;
}

export function Field({ label, hideLabel, hint, error, type = "text", inputRef, onInput, ...rest }: Props) {
  const id = useId();
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  // The types of the framework tie the other attributes to one `type`; here it is a parameter.
  const attributes = { ...rest, type } as InputHTMLAttributes;
  return (
    <div class={styles.field}>
      <label for={id} class={hideLabel ? "quiet" : undefined}>
        {label}
      </label>
      <input
        {...attributes}
        id={id}
        ref={inputRef}
        class={styles.input}
        spellcheck={false}
        aria-invalid={error ? "true" : undefined}
        aria-describedby={described || undefined}
        onInput={onInput && ((event) => onInput(event.currentTarget.value))}
      />
      {hint && (
        <p id={`${id}-hint`} class={styles.hint}>
          {hint}
        </p>
      )}
      {error && (
        <p id={`${id}-error`} class={styles.error} role="alert">
          {error}
        </p>
      )}
    </div>
  );
}
