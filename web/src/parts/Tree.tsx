/** A tree of categories after the ARIA pattern, with tick boxes of three states or a single choice. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../text/common";
import { formatNumber } from "../text/texts";
import { checkOf, documentsIn, pathKey, rowsOf, toggled, type Branch, type Row, type Selection } from "./branches";
import { Icon } from "./Icon";
import styles from "./Tree.module.css";

interface Props {
  tree: readonly Branch[];
  label: string;
  search?: string;
  /** With `onSelect`: boxes to tick. */
  selection?: Selection;
  onSelect?: (selection: Selection) => void;
  /** With `onCurrent`: one branch is the current one. */
  current?: readonly string[] | null;
  onCurrent?: (branch: Branch) => void;
  /** What stands at the end of a row, instead of the number of documents. */
  trailing?: (branch: Branch) => ComponentChildren;
  /** Branches that are open at first; the outermost ones when left out. */
  open?: readonly (readonly string[])[];
  /** Other keys than those of the tree, on the focused branch; gives whether it used the key. */
  onKey?: (key: string, branch: Branch) => boolean;
}

const MARKS = { on: "true", off: "false", mixed: "mixed" } as const;
const TYPING_MS = 700;

export function Tree(props: Props) {
  const { tree, label, search = "", selection, onSelect, current, onCurrent } = props;
  const [expanded, setExpanded] = useState(() => new Set((props.open ?? outermost(tree)).map(pathKey)));
  const [focused, setFocused] = useState("");
  const typed = useRef({ text: "", at: 0 });
  const list = useRef<HTMLUListElement>(null);
  const rows = rowsOf(tree, expanded, search);
  const currentKey = current ? pathKey(current) : "";
  useEffect(() => {
    if (!current) return;
    setFocused(currentKey);
    setExpanded((before) => new Set([...before, ...above(current).map(pathKey)]));
  }, [currentKey]);
  const active = rows.find((row) => pathKey(row.branch.path) === focused) ?? rows[0];

  function focus(row: Row | undefined) {
    if (!row) return;
    setFocused(pathKey(row.branch.path));
    list.current?.children[rows.indexOf(row)]?.querySelector<HTMLElement>("[role=treeitem]")?.focus();
  }
  function expand(row: Row, on: boolean) {
    const next = new Set(expanded);
    if (on) next.add(pathKey(row.branch.path));
    else next.delete(pathKey(row.branch.path));
    setExpanded(next);
  }
  function choose(row: Row) {
    setFocused(pathKey(row.branch.path));
    if (onSelect) onSelect(toggled(tree, row.branch.path, selection ?? []));
    onCurrent?.(row.branch);
  }
  function pressed(event: KeyboardEvent) {
    if (!active || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = rows.indexOf(active);
    const parent = rows.slice(0, at).findLast((row) => row.level < active.level);
    const isOpen = active.expanded;
    const moves: Record<string, () => void> = {
      ArrowDown: () => focus(rows[at + 1]),
      ArrowUp: () => focus(rows[at - 1]),
      Home: () => focus(rows[0]),
      End: () => focus(rows.at(-1)),
      ArrowRight: () => (isOpen ? focus(rows[at + 1]) : active.branch.children.length && expand(active, true)),
      ArrowLeft: () => (isOpen && !search ? expand(active, false) : focus(parent)),
      Enter: () => choose(active),
      " ": () => choose(active),
    };
    const move = moves[event.key];
    if (move) move();
    else if (props.onKey?.(event.key, active.branch)) event.stopPropagation();
    else if (event.key.length === 1) typeAhead(event);
    else return;
    event.preventDefault();
  }
  function typeAhead(event: KeyboardEvent) {
    const again = event.timeStamp - typed.current.at < TYPING_MS;
    typed.current = { text: (again ? typed.current.text : "") + event.key.toLocaleLowerCase(), at: event.timeStamp };
    const from = active ? rows.indexOf(active) + (again ? 0 : 1) : 0;
    const order = [...rows.slice(from), ...rows.slice(0, from)];
    focus(order.find((row) => row.branch.name.toLocaleLowerCase().startsWith(typed.current.text)));
  }

  return (
    <ul
      ref={list}
      class={styles.tree}
      role="tree"
      aria-label={label}
      aria-multiselectable={Boolean(onSelect)}
      onKeyDown={pressed}
    >
      {rows.map((row) => {
        const key = pathKey(row.branch.path);
        const check = onSelect ? checkOf(row.branch.path, selection ?? []) : undefined;
        const isCurrent = key === currentKey;
        const folder = row.branch.children.length > 0;
        return (
          <li key={key} role="none">
            <div
              role="treeitem"
              class={`${styles.row} ${isCurrent ? styles.current : ""}`}
              style={{ "--level": row.level }}
              tabIndex={row === active ? 0 : -1}
              aria-level={row.level}
              aria-posinset={row.position}
              aria-setsize={row.siblings}
              aria-expanded={folder ? row.expanded : undefined}
              aria-checked={check && MARKS[check]}
              aria-selected={onCurrent ? isCurrent : undefined}
              onFocus={() => setFocused(key)}
              onClick={() => choose(row)}
            >
              <span
                class={styles.toggle}
                aria-hidden="true"
                onClick={(event) => {
                  event.stopPropagation();
                  if (folder) expand(row, !row.expanded);
                }}
              >
                {folder && <Icon name={row.expanded ? "down" : "right"} size={16} />}
              </span>
              {check && <span class={`${styles.box} ${styles[check]}`} aria-hidden="true" />}
              <span class={styles.name}>{row.branch.name}</span>
              <span class={styles.count}>
                {props.trailing ? props.trailing(row.branch) : <Documents n={documentsIn(row.branch)} />}
              </span>
            </div>
          </li>
        );
      })}
    </ul>
  );
}

function Documents({ n }: { n: number }) {
  return (
    <>
      {formatNumber(n)}
      <span class="quiet">{t("tree.documents", { n })}</span>
    </>
  );
}

const above = (path: readonly string[]) => path.slice(1).map((_, depth) => path.slice(0, depth + 1));
const outermost = (tree: readonly Branch[]) => tree.map((branch) => branch.path);
