/** Rows of a long list, loaded in pages as they become visible. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { asProblem, isAbort, type Problem } from "../api/problem";
import { recoveries } from "./connection";

export interface PageOf<T> {
  rows: readonly T[];
  total: number;
}
export type LoadPage<T> = (page: { limit: number; offset: number; signal: AbortSignal }) => Promise<PageOf<T>>;

const PAGE = 100;
/** Pages are requested when scrolling rests this long, so that a pulled scrollbar does not request each one it passes. */
const REST_MS = 80;

export class PageStore<T> {
  total: number | undefined;
  problem: Problem | null = null;
  private readonly pages = new Map<number, readonly T[]>();
  private readonly running = new Map<number, AbortController>();
  private range: readonly [number, number] = [0, 0];
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly load: LoadPage<T>,
    private readonly changed: () => void,
  ) {}

  row(index: number): T | undefined {
    return this.pages.get(Math.floor(index / PAGE))?.[index % PAGE];
  }

  /** Rows [first, last] are visible. */
  show(first: number, last: number): void {
    this.range = [Math.floor(first / PAGE), Math.floor(last / PAGE)];
    clearTimeout(this.timer);
    if (this.total === undefined) this.request();
    else this.timer = setTimeout(() => this.request(), REST_MS);
  }

  reload(): void {
    this.problem = null;
    this.request();
    this.changed();
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const abort of this.running.values()) abort.abort();
    this.running.clear();
  }

  private request(): void {
    const [from, to] = this.range;
    for (const [page, abort] of this.running) {
      if (page >= from && page <= to) continue;
      abort.abort();
      this.running.delete(page);
    }
    for (let page = from; page <= to; page += 1)
      if (!this.pages.has(page) && !this.running.has(page)) void this.fetch(page);
  }

  private async fetch(page: number): Promise<void> {
    const abort = new AbortController();
    this.running.set(page, abort);
    try {
      const { rows, total } = await this.load({ limit: PAGE, offset: page * PAGE, signal: abort.signal });
      if (abort.signal.aborted) return;
      this.pages.set(page, rows);
      this.total = total;
      this.problem = null;
    } catch (error) {
      if (abort.signal.aborted || isAbort(error)) return;
      this.problem = asProblem(error);
    }
    this.running.delete(page);
    this.changed();
  }
}

/** The list for a component; another item in `dependencies` makes it load everything again. */
export function usePaged<T>(
  load: LoadPage<T>,
  dependencies: readonly (string | number)[],
): Pick<PageStore<T>, "total" | "problem" | "row" | "show" | "reload"> {
  const [, render] = useState(0);
  const store = useMemo(() => new PageStore<T>(load, () => render((number) => number + 1)), [...dependencies]);
  const recovered = recoveries.value;
  useEffect(() => {
    store.show(0, 0);
    return () => store.dispose();
  }, [store]);
  useEffect(() => {
    if (store.problem) store.reload();
  }, [recovered]);
  return store;
}
