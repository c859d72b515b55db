/** Where the runs lie in the plot of a measure. */
import type { RunLine } from "./state";

export interface Point {
  run: RunLine;
  value: number;
  /** From 0, the oldest run, to 1, the newest. */
  x: number;
  /** From 0, the bottom of the plot, to 1, its top: the value and the ends of its interval. */
  y: number;
  low: number;
  high: number;
}

export interface Plotted {
  points: Point[];
  /** The values at the bottom and at the top. */
  bottom: number;
  top: number;
}

export function pointsOf(runs: readonly RunLine[], measure: string): Plotted {
  const measured = runs.flatMap((run) => {
    const estimate = run.measures[measure];
    return estimate ? [{ run, estimate, at: Date.parse(run.created_at) }] : [];
  });
  measured.sort((one, other) => one.at - other.at);
  const times = measured.map(({ at }) => at);
  const bottom = Math.min(...measured.map(({ estimate }) => estimate.low));
  const top = Math.max(...measured.map(({ estimate }) => estimate.high));
  const [start, end] = [Math.min(...times), Math.max(...times)];
  const share = (value: number, from: number, to: number) => (to > from ? (value - from) / (to - from) : 0.5);
  const points = measured.map(({ run, estimate, at }) => ({
    run,
    value: estimate.value,
    x: share(at, start, end),
    y: share(estimate.value, bottom, top),
    low: share(estimate.low, bottom, top),
    high: share(estimate.high, bottom, top),
  }));
  return { points, bottom, top };
}
