/** The stages of the search for one passage: score as bar and number, rank, and places moved. */
import { Meter } from "../../parts/Bars";
import type { Stage } from "./stages";
import { t } from "./text";
import styles from "./StageTable.module.css";

export function StageTable({ stages, label }: { stages: readonly Stage[]; label: string }) {
  if (stages.length === 0) return null;
  return (
    <table class={styles.table} aria-label={label}>
      <thead>
        <tr>
          <th scope="col">{t("stage.stage")}</th>
          <th scope="col" colSpan={2}>
            {t("stage.score")}
          </th>
          <th scope="col">{t("stage.rank")}</th>
        </tr>
      </thead>
      <tbody>
        {stages.map((stage) => (
          <tr key={stage.name} class={stage.name === "rerank" ? styles.last : undefined}>
            <th scope="row">{t(`stage.${stage.name}`)}</th>
            <td class={styles.bar}>
              <Meter value={stage.score ?? 0} tone={stage.name === "rerank" ? "good" : "accent"} />
            </td>
            <td class={styles.number}>{stage.score === null ? "–" : stage.score.toFixed(3)}</td>
            <td class={styles.number}>
              {stage.rank === null ? "–" : stage.rank}
              <Move places={stage.move} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Move({ places }: { places: number | null }) {
  if (places === null || places === 0) return null;
  const key = places > 0 ? "stage.up" : "stage.down";
  return (
    <span class={places > 0 ? styles.up : styles.down}>
      <span aria-hidden="true">{places > 0 ? ` ▲${places}` : ` ▼${-places}`}</span>
      <span class="quiet">{t(key, { n: Math.abs(places) })}</span>
    </span>
  );
}
