/** Data of the service for a component: loads, aborts when it is replaced, and loads again when the service is back. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { asProblem, isAbort, type Problem } from "../api/problem";
import { recoveries } from "./connection";

export interface Resource<T> {
  data: T | undefined;
  problem: Problem | null;
  loading: boolean;
  reload: () => void;
}

/**
 * `useResource((signal) => api.get("/agents", { signal }), [])`.
 *
 * `load` is called again when an item of `dependencies` changes; the earlier data stays until the new data is there.
 * `load` null: nothing to load yet.
 */
export function useResource<T>(
  load: ((signal: AbortSignal) => Promise<T>) | null,
  dependencies: readonly (string | number | boolean | null | undefined)[],
): Resource<T> {
  const [data, setData] = useState<T>();
  const [problem, setProblem] = useState<Problem | null>(null);
  const [loading, setLoading] = useState(load !== null);
  const [attempt, setAttempt] = useState(0);
  const reload = useCallback(() => setAttempt((number) => number + 1), []);
  const recovered = recoveries.value;
  const failedAt = useRef(recovered);

  useEffect(() => {
    if (problem && recovered !== failedAt.current) reload();
  }, [recovered, problem, reload]);

  useEffect(() => {
    if (load === null) return;
    const abort = new AbortController();
    setLoading(true);
    load(abort.signal).then(
      (value) => {
        setData(() => value);
        setProblem(null);
        setLoading(false);
      },
      (error: unknown) => {
        if (abort.signal.aborted || isAbort(error)) return;
        failedAt.current = recoveries.peek();
        setProblem(asProblem(error));
        setLoading(false);
      },
    );
    return () => abort.abort();
    // `load` is written in place and differs at every render: `dependencies` say when it does something else.
  }, [...dependencies, attempt, load === null]);

  return { data, problem, loading, reload };
}
