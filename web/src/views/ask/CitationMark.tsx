/** `[n]` in an answer: a preview on hover and focus, the source beside the answer on click. */
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Quotation } from "../../parts/QuotedText";
import { sourceName } from "./source-name";
import { address } from "./state";
import { t } from "./text";
import type { Source, Turn } from "./turn";
import styles from "./CitationMark.module.css";

const OPEN_MS = 250;
/** Long enough to move the pointer from the mark into the preview. */
const CLOSE_MS = 180;
const GAP = 8;

export const markId = (turn: number, number: number): string => `source-${turn}-${number}`;

export function CitationMark({ turn, number }: { turn: Turn; number: number }) {
  const source = turn.sources.find((candidate) => candidate.number === number);
  if (!source) return <>[{number}]</>;
  return <Mark turn={turn} source={source} />;
}

function Mark({ turn, source }: { turn: Turn; source: Source }) {
  const mark = useRef<HTMLAnchorElement>(null);
  const [open, setOpen] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const id = useId();
  const later = (show: boolean, wait: number) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setOpen(show), wait);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  const name = sourceName(turn, source);
  const current = address.read().source === `${turn.id}.${source.number}`;
  return (
    <>
      <a
        ref={mark}
        id={markId(turn.id, source.number)}
        class={styles.mark}
        href={address.link({ source: `${turn.id}.${source.number}` })}
        aria-label={t("ask.source", { n: source.number, label: name })}
        aria-describedby={open ? id : undefined}
        aria-current={current ? "true" : undefined}
        onPointerEnter={(event) => event.pointerType === "mouse" && later(true, OPEN_MS)}
        onPointerLeave={() => later(false, CLOSE_MS)}
        onFocus={(event) => event.currentTarget.matches(":focus-visible") && later(true, OPEN_MS)}
        onBlur={() => later(false, 0)}
        onClick={() => later(false, 0)}
      >
        {source.number}
      </a>
      {open && (
        <Preview
          id={id}
          name={name}
          source={source}
          mark={mark.current}
          onKeep={() => later(true, 0)}
          onClose={(wait) => later(false, wait)}
        />
      )}
    </>
  );
}

interface PreviewProps {
  id: string;
  name: string;
  source: Source;
  mark: HTMLElement | null;
  onKeep: () => void;
  onClose: (wait: number) => void;
}

function Preview({ id, name, source, mark, onKeep, onClose }: PreviewProps) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (!element || !mark) return;
    element.showPopover();
    place(element, mark.getBoundingClientRect());
    const escape = (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      onClose(0);
    };
    document.addEventListener("keydown", escape, true);
    return () => document.removeEventListener("keydown", escape, true);
  }, [mark]);
  return (
    <div
      ref={box}
      id={id}
      popover="manual"
      role="tooltip"
      class={styles.preview}
      onPointerEnter={onKeep}
      onPointerLeave={() => onClose(CLOSE_MS)}
    >
      <strong>{name}</strong>
      <div class={styles.quote}>
        <Quotation source={source} />
      </div>
    </div>
  );
}

/** Below the mark, above it where there is no room, and always inside the window. */
function place(box: HTMLElement, mark: DOMRect): void {
  const { width, height } = box.getBoundingClientRect();
  const below = mark.bottom + GAP + height <= window.innerHeight;
  const left = Math.max(GAP, Math.min(mark.left, window.innerWidth - width - GAP));
  box.style.left = `${left}px`;
  box.style.top = `${Math.max(GAP, below ? mark.bottom + GAP : mark.top - GAP - height)}px`;
}
