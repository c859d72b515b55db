/** Details that few need: rendered, and thereby loaded, when they are opened. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

export function Folded({ title, children }: { title: string; children: ComponentChildren }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{title}</summary>
      {open && children}
    </details>
  );
}
