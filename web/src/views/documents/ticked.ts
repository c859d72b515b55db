/** The ticked documents of the list: single ones, all from one to another, all that the filters show. */
import { useRef, useState } from "preact/hooks";
import { asProblem, type Problem } from "../../api/problem";

/** Documents of one change; the service refuses more. */
export const MOST = 1000;

/** The ids after these were ticked (or not any more), at most `MOST`. */
export function withTicked(before: ReadonlySet<string>, ids: readonly string[], on: boolean): ReadonlySet<string> {
  const after = new Set(before);
  for (const id of ids)
    if (!on) after.delete(id);
    else if (after.size < MOST) after.add(id);
  return after;
}

/** `load` gives the ids of so many rows from one on: those between two ticks need not be in the page. */
export function useTicked(load: (offset: number, limit: number) => Promise<readonly string[]>) {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const [problem, setProblem] = useState<Problem | null>(null);
  const last = useRef<number | undefined>(undefined);
  const tick = (rows: readonly string[], on: boolean) => setIds((before) => withTicked(before, rows, on));
  const range = async (first: number, count: number, on: boolean) => {
    setProblem(null);
    try {
      tick(await load(first, Math.min(count, MOST)), on);
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  return {
    ids,
    problem,
    toggle(id: string, row: number, through: boolean) {
      const from = last.current;
      last.current = row;
      const on = !ids.has(id);
      tick([id], on);
      if (through && from !== undefined) void range(Math.min(from, row), Math.abs(row - from) + 1, on);
    },
    all: () => void range(0, MOST, true),
    clear: () => setIds(new Set()),
  };
}

export type Ticked = ReturnType<typeof useTicked>;
