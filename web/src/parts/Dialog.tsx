/** A modal dialog: the browser traps the focus and gives it back; Escape and a click beside it close it, except
 * where its content cannot be shown again. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { openDialogs } from "../state/announce";
import { LiveRegion } from "./LiveRegion";
import { route } from "../state/router";
import { t } from "../text/common";
import { Button } from "./Button";
import styles from "./Dialog.module.css";

interface Props {
  title: string;
  open: boolean;
  onClose: () => void;
  /** `side`: a sheet at the edge, the whole width on a small screen. */
  shape?: "middle" | "wide" | "side" | "menu";
  /** The content fills the dialog without a margin and scrolls itself. */
  flush?: boolean;
  /** Only its buttons close it: what it shows cannot be shown again. */
  onlyButtonsClose?: boolean;
  footer?: ComponentChildren;
  children: ComponentChildren;
}

export function Dialog({ title, open, onClose, shape = "middle", flush, onlyButtonsClose, footer, children }: Props) {
  const ref = useRef<HTMLDialogElement>(null);
  const pressedBeside = useRef(false);
  const id = useId();
  useEffect(() => {
    const dialog = ref.current;
    if (!dialog || !open) return;
    const before = document.activeElement;
    const view = route.peek().view;
    dialog.showModal();
    openDialogs.value = [...openDialogs.peek(), ref];
    return () => {
      dialog.close();
      openDialogs.value = openDialogs.peek().filter((other) => other !== ref);
      const stays = before instanceof HTMLElement && before.isConnected && route.peek().view === view;
      (stays ? before : document.getElementById("main"))?.focus();
    };
  }, [open]);
  if (!open) return null;
  return (
    <dialog
      ref={ref}
      class={`${styles.dialog} ${styles[shape]}`}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        if (!onlyButtonsClose) onClose();
      }}
      onKeyDown={(event) => {
        // A browser lets the second Escape in a row pass `cancel`; that of the key itself holds.
        if (onlyButtonsClose && event.key === "Escape") event.preventDefault();
      }}
      onPointerDown={(event) => (pressedBeside.current = event.target === ref.current)}
      onClick={(event) => {
        // A selection of text that ends beside the dialog is a click on it too.
        const beside = event.target === ref.current && pressedBeside.current;
        pressedBeside.current = false;
        if (beside && !onlyButtonsClose) onClose();
      }}
    >
      <div class={styles.content}>
        <header class={styles.header}>
          <h2 id={id}>{title}</h2>
          <Button kind="bare" icon="close" label={t("shell.close")} onClick={onClose} />
        </header>
        <div class={flush ? styles.flush : styles.body}>{children}</div>
        {footer && <footer class={styles.footer}>{footer}</footer>}
        <LiveRegion dialog={ref} />
      </div>
    </dialog>
  );
}
