/** A small plot for each measure of one set; each says its values as text, too. */
import { formatDate, formatDateTime } from "../../text/texts";
import { pointsOf } from "./points";
import { Select } from "./Select";
import { address, setOf, type RunLine } from "./state";
import { t } from "./text";
import styles from "./Evaluation.module.css";

const [WIDTH, HEIGHT, MARGIN] = [300, 90, 8];

export function Plots({ runs }: { runs: readonly RunLine[] }) {
  const sets = [...new Set(runs.map(setOf))];
  const { set } = address.read();
  const chosen = sets.includes(set) ? set : (sets[0] ?? "");
  const plotted = runs.filter((run) => setOf(run) === chosen);
  const names = [...new Set(plotted.flatMap((run) => Object.keys(run.measures)))];
  return (
    <section class={styles.section} aria-labelledby="plots-title">
      <h2 id="plots-title">{t("plot.title")}</h2>
      <Select
        label={t("plot.set")}
        value={chosen}
        choices={sets.map((value) => ({ value, text: value }))}
        onChange={(value) => address.set({ set: value }, { replace: true })}
      />
      <p class={styles.small}>{t("plot.help")}</p>
      <div class={styles.plots}>
        {names.map((name) => (
          <Plot key={name} measure={name} runs={plotted} />
        ))}
      </div>
    </section>
  );
}

function Plot({ measure, runs }: { measure: string; runs: readonly RunLine[] }) {
  const { points, bottom, top } = pointsOf(runs, measure);
  const [first, last] = [points[0], points.at(-1)];
  if (!first || !last) return null;
  const x = (share: number) => MARGIN + share * (WIDTH - 2 * MARGIN);
  const y = (share: number) => HEIGHT - MARGIN - share * (HEIGHT - 2 * MARGIN);
  const said = points.map(({ run, value }) => {
    const { low = value, high = value } = run.measures[measure] ?? {};
    const [shown, from, to] = [value.toFixed(3), low.toFixed(3), high.toFixed(3)];
    return t("plot.point", { at: formatDateTime(run.created_at), value: shown, low: from, high: to });
  });
  const label = t("plot.label", { measure, n: points.length, points: said.join("; ") });
  return (
    <figure class={styles.plot}>
      <figcaption>
        <span>{measure}</span> <strong>{last.value.toFixed(3)}</strong>
      </figcaption>
      <div class={styles.range} aria-hidden="true">
        {top.toFixed(2)}
      </div>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
        <line class={styles.axis} x1={0} x2={WIDTH} y1={HEIGHT - 1} y2={HEIGHT - 1} />
        <polyline class={styles.curve} points={points.map((point) => `${x(point.x)},${y(point.y)}`).join(" ")} />
        {points.map((point, index) => (
          <g key={point.run.run_id}>
            <title>{said[index]}</title>
            <line class={styles.bar} x1={x(point.x)} x2={x(point.x)} y1={y(point.low)} y2={y(point.high)} />
            <circle class={styles.dot} cx={x(point.x)} cy={y(point.y)} r={3.5} />
          </g>
        ))}
      </svg>
      <div class={styles.range} aria-hidden="true">
        <span>{bottom.toFixed(2)}</span>
        <span>
          {formatDate(first.run.created_at)} – {formatDate(last.run.created_at)}
        </span>
      </div>
    </figure>
  );
}
