/** Where the steps and model calls of a trace lie in time. */
import type { Call, Step, Trace } from "./trace-facts";

export interface PlacedStep extends Step {
  /** Seconds since the run began. */
  from: number;
  /** The model calls that began in this step, in lanes: calls that ran at the same time are in different ones. */
  lanes: TimedCall[][];
}

export interface TimedCall extends Call {
  started: number;
  /** The number of the call in the list of the trace, from 1. */
  number: number;
}

/** The steps run one after another; traces of earlier versions do not store what lies between them. */
export function placed({ steps, calls }: Pick<Trace, "steps" | "calls">): PlacedStep[] {
  let end = 0;
  const starts = steps.map((step) => {
    const from = step.started ?? end;
    end = from + step.seconds;
    return from;
  });
  const timed = calls.flatMap((call, index) =>
    call.started === null ? [] : [{ ...call, started: call.started, number: index + 1 }],
  );
  return steps.map((step, index) => {
    const [from, next] = [starts[index] ?? 0, starts[index + 1] ?? Infinity];
    const own = timed.filter(({ started }) => (index === 0 || started >= from) && started < next);
    return { ...step, from, lanes: lanesOf(own) };
  });
}

/** The seconds that the width of the waterfall stands for. */
export const spanOf = (trace: Pick<Trace, "steps" | "calls" | "seconds">): number =>
  Math.max(trace.seconds, ...placed(trace).map(({ from, seconds }) => from + seconds));

/** Each call in the first lane that is free when it begins. */
function lanesOf(calls: readonly TimedCall[]): TimedCall[][] {
  const lanes: TimedCall[][] = [];
  for (const call of [...calls].sort((one, other) => one.started - other.started)) {
    const free = lanes.find((lane) => {
      const last = lane.at(-1);
      return last === undefined || last.started + last.seconds <= call.started;
    });
    if (free) free.push(call);
    else lanes.push([call]);
  }
  return lanes;
}
