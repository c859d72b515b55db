/** The frame of a view that scrolls as a whole: its heading, one sentence about it, and what can be done. */
import type { ComponentChildren } from "preact";
import styles from "./Page.module.css";

interface Props {
  title: ComponentChildren;
  lead?: string;
  actions?: ComponentChildren;
  /** `fill`: exactly as high as the window, for a list that scrolls by itself. */
  fill?: boolean;
  children: ComponentChildren;
}

export function Page({ title, lead, actions, fill, children }: Props) {
  return (
    <div class={`${styles.page} ${fill ? styles.fill : ""}`}>
      <header class={styles.header}>
        <div class={styles.words}>
          <h1>{title}</h1>
          {lead && <p class={styles.lead}>{lead}</p>}
        </div>
        {actions && <div class={styles.actions}>{actions}</div>}
      </header>
      {children}
    </div>
  );
}
