/** Buttons: `main` for the one thing to do, `plain` for others, `bare` inside lines; with an icon, or only one. */
import type { ComponentChildren, Ref } from "preact";
import type { ButtonHTMLAttributes } from "preact";
import { Icon, type IconName } from "./Icon";
import styles from "./Button.module.css";

interface Props extends Omit<ButtonHTMLAttributes, "icon" | "class"> {
  kind?: "main" | "plain" | "bare";
  icon?: IconName;
  /** The name of a button that shows only its icon. */
  label?: string;
  danger?: boolean;
  small?: boolean;
  buttonRef?: Ref<HTMLButtonElement>;
  children?: ComponentChildren;
}

export function Button({ kind = "plain", icon, label, danger, small, buttonRef, children, ...rest }: Props) {
  const classes = [styles.button, styles[kind], danger && styles.danger, small && styles.small, label && styles.square];
  return (
    <button
      type="button"
      {...rest}
      ref={buttonRef}
      class={classes.filter(Boolean).join(" ")}
      aria-label={label ?? rest["aria-label"]}
      title={label}
    >
      {icon && <Icon name={icon} size={small ? 16 : 18} />}
      {children}
    </button>
  );
}
