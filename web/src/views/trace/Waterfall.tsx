/** The steps in time: when each ran, how much of its limit it used, and what happened to the passages. */
import { Badge, type Tone } from "../../parts/Badge";
import { Meter } from "../../parts/Bars";
import { stepName } from "../../text/part-names";
import { formatPercent, formatSeconds } from "../../text/texts";
import { t } from "./text";
import { placed, spanOf, type PlacedStep } from "./timeline";
import { flows, otherFacts, type Flow, type Trace } from "./trace-facts";
import styles from "./Waterfall.module.css";

/** The thinnest visible bar, in per cent. */
const THINNEST = 0.6;

export function Waterfall({ trace }: { trace: Trace }) {
  const total = spanOf(trace);
  const flow = flows(trace.steps);
  return (
    <ol class={styles.steps}>
      {placed(trace).map((step, index) => (
        <li key={`${index} ${step.name}`} class={styles.step}>
          <div class={styles.name}>
            <strong>{stepName(step.name)}</strong>
            {step.outcome !== "done" && <Badge tone={toneOf(step.outcome)}>{outcomeText(step.outcome)}</Badge>}
          </div>
          <Bars step={step} total={total} />
          <Budget step={step} />
          <p class={styles.flow}>{[flowText(flow[index]), callsText(step)].filter(Boolean).join(". ")}</p>
          <Facts step={step} />
        </li>
      ))}
    </ol>
  );
}

/** The step with its limit behind it, and below them its model calls, those at the same time below each other. */
function Bars({ step, total }: { step: PlacedStep; total: number }) {
  const share = (seconds: number) => (total > 0 ? (seconds / total) * 100 : 0);
  const place = (from: number, seconds: number) => {
    const width = Math.min(100, Math.max(THINNEST, share(seconds)));
    return { insetInlineStart: `${Math.min(100 - width, share(from))}%`, width: `${width}%` };
  };
  const limit = Math.min(step.budget, total - step.from);
  return (
    <span class={styles.bars} aria-hidden="true">
      <span class={styles.track}>
        {limit > step.seconds && <span class={styles.limit} style={place(step.from, limit)} />}
        <span
          class={`${styles.bar} ${step.outcome === "done" ? "" : styles[toneOf(step.outcome)]}`}
          style={place(step.from, step.seconds)}
        />
      </span>
      {step.lanes.map((lane, index) => (
        <span key={index} class={styles.lane}>
          {lane.map((call) => (
            <span
              key={call.number}
              class={`${styles.call} ${call.error ? styles.failed : ""}`}
              style={place(call.started, call.seconds)}
            />
          ))}
        </span>
      ))}
    </span>
  );
}

function Budget({ step }: { step: PlacedStep }) {
  const used = step.budget > 0 ? step.seconds / step.budget : 0;
  return (
    <div class={styles.budget}>
      <Meter value={used} tone={used >= 1 ? "bad" : used > 0.8 ? "warn" : "good"} />
      <span>
        {step.budget > 0
          ? t("step.ofBudget", {
              time: shortTime(step.seconds),
              budget: formatSeconds(step.budget),
              p: formatPercent(used),
            })
          : shortTime(step.seconds)}
      </span>
    </div>
  );
}

function Facts({ step }: { step: PlacedStep }) {
  const facts = otherFacts(step);
  if (facts.length === 0) return null;
  return (
    <details class={styles.facts}>
      <summary>{t("step.details", { name: stepName(step.name) })}</summary>
      <dl>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

function flowText(flow: Flow | undefined): string {
  if (!flow?.after) return "";
  const { before, after } = flow;
  const then =
    after.kind === "sentences"
      ? t("flow.sentences", { n: after.n, of: after.of ?? after.n })
      : t(`flow.${after.kind}`, { n: after.n });
  if (!before) return then;
  const first =
    before.kind === "candidates"
      ? t("flow.candidates", { lexical: before.lexical, vector: before.vector })
      : t("flow.passages", { n: before.n });
  return `${first} → ${then}`;
}

/** The model calls of a step, and how many of them ran at the same time. */
function callsText({ lanes }: PlacedStep): string {
  const n = lanes.reduce((sum, lane) => sum + lane.length, 0);
  if (n === 0) return "";
  return lanes.length > 1 ? t("step.callsTogether", { n, most: lanes.length }) : t("step.calls", { n });
}

/** A step that took less than a millisecond took some time all the same. */
const shortTime = (seconds: number) => (seconds > 0 && seconds < 0.001 ? "< 1 ms" : formatSeconds(seconds));

const toneOf = (outcome: string): Tone => (outcome === "failed" ? "bad" : outcome === "timeout" ? "warn" : "neutral");

function outcomeText(outcome: string): string {
  if (outcome === "skipped" || outcome === "timeout" || outcome === "failed") return t(`outcome.${outcome}`);
  return outcome;
}
