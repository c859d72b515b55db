/** Which share of the answers is not right when only those of at least some confidence are given. */
import { DataTable } from "../../parts/DataTable";
import { formatPercent } from "../../text/texts";
import type { Run } from "./state";
import { t } from "./text";
import styles from "./Evaluation.module.css";

const [WIDTH, HEIGHT, MARGIN] = [480, 200, 8];

export function Curve({ points }: { points: Run["risk_coverage"] }) {
  const last = points.at(-1);
  if (!last) return null;
  const most = Math.max(...points.map(({ risk }) => risk));
  const top = Math.max(0.1, Math.ceil(most * 10) / 10);
  const place = ({ coverage, risk }: (typeof points)[number]) => ({
    x: MARGIN + coverage * (WIDTH - 2 * MARGIN),
    y: HEIGHT - MARGIN - (risk / top) * (HEIGHT - 2 * MARGIN),
  });
  const label = t("curve.label", {
    n: points.length,
    coverage: formatPercent(last.coverage),
    risk: formatPercent(last.risk),
  });
  return (
    <section class={styles.section} aria-labelledby="curve-title">
      <h2 id="curve-title">{t("curve.title")}</h2>
      <p class={styles.small}>{t("curve.help")}</p>
      <figure class={`${styles.plot} ${styles.wide}`}>
        <div class={styles.range} aria-hidden="true">
          {t("curve.risk")} {formatPercent(top)}
        </div>
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
          <line class={styles.axis} x1={0} x2={WIDTH} y1={HEIGHT - 1} y2={HEIGHT - 1} />
          <polyline
            class={styles.curve}
            points={points
              .map(place)
              .map(({ x, y }) => `${x},${y}`)
              .join(" ")}
          />
          {points.map((point) => (
            <circle key={point.confidence} class={styles.dot} cx={place(point).x} cy={place(point).y} r={3} />
          ))}
        </svg>
        <div class={styles.range} aria-hidden="true">
          <span>0%</span>
          <span>{t("curve.coverage")} 100%</span>
        </div>
      </figure>
      <details>
        <summary>{t("curve.values")}</summary>
        <DataTable
          label={t("curve.title")}
          rows={points}
          keyOf={({ confidence }) => confidence}
          columns={[
            { title: t("curve.confidence"), number: true, render: ({ confidence }) => formatPercent(confidence) },
            { title: t("curve.coverage"), number: true, render: ({ coverage }) => formatPercent(coverage) },
            { title: t("curve.risk"), number: true, render: ({ risk }) => formatPercent(risk) },
          ]}
        />
      </details>
    </section>
  );
}
