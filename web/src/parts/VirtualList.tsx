/** A list of any length with rows of one height: only the visible rows are in the page. */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import styles from "./VirtualList.module.css";

interface Props {
  count: number;
  rowHeight: number;
  label: string;
  children: (index: number) => ComponentChildren;
  /** Called with the visible rows [first, last], to load them. */
  onVisible?: (first: number, last: number) => void;
  /** The row at the top when the list opens. */
  initial?: number;
}

const SPARE_ROWS = 8;

export function VirtualList({ count, rowHeight, label, children, onVisible, initial = 0 }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    element.scrollTop = initial * rowHeight;
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", measure);
    };
  }, []);
  const first = Math.max(0, Math.floor(view.top / rowHeight) - SPARE_ROWS);
  const last = Math.min(count - 1, Math.ceil((view.top + view.height) / rowHeight) + SPARE_ROWS);
  useEffect(() => {
    if (count > 0) onVisible?.(first, last);
  }, [first, last, count]);
  const rows = Array.from({ length: Math.max(0, last - first + 1) }, (_, offset) => first + offset);
  return (
    <div ref={box} class={styles.box} tabIndex={0} role="region" aria-label={label}>
      <ul class={styles.list} style={{ height: `${count * rowHeight}px` }}>
        {rows.map((index) => (
          <li
            key={index}
            class={styles.row}
            aria-setsize={count}
            aria-posinset={index + 1}
            style={{ height: `${rowHeight}px`, transform: `translateY(${index * rowHeight}px)` }}
          >
            {children(index)}
          </li>
        ))}
      </ul>
    </div>
  );
}
