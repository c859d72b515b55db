/** Figures of the case memory: how much there is, whether answers may be reused, whether there is enough to train on. */
import type { components } from "../../api/schema";
import { Badge } from "../../parts/Badge";
import { Bars } from "../../parts/Bars";
import { Facts } from "../../parts/Facts";
import { Said } from "../../parts/Statements";
import { formatNumber, formatPercent } from "../../text/texts";
import { t } from "./text";
import styles from "./Statistics.module.css";

type Figures = components["schemas"]["StatsResponse"];
/** Interactions that training needs. */
const ENOUGH = 1000;

export function Statistics({ figures }: { figures: Figures }) {
  const { cbr_system_stats: system, neural_selector_readiness: readiness, performance, reuse } = figures;
  const milliseconds = (value: number) => `${formatNumber(Math.round(value * 10) / 10)} ms`;
  const facts: [string, string][] = [
    [t("stats.cases"), formatNumber(system.total_cases)],
    [t("stats.archived"), formatNumber(system.archived_cases)],
    [t("stats.votes"), formatNumber(system.total_usage_count)],
    [t("stats.quality"), system.total_cases > 0 ? formatPercent(system.average_quality_score) : "–"],
    [t("stats.time"), system.total_interactions > 0 ? milliseconds(performance.current_avg_response_time_ms) : "–"],
  ];
  const categories = Object.entries(system.category_distribution);
  return (
    <section class={styles.figures} aria-label={t("stats.title")}>
      <div class={styles.large}>
        <Facts facts={facts} />
      </div>
      <div class={styles.columns}>
        <section class={styles.block}>
          <h2>{t("reuse.title")}</h2>
          <p>
            <Badge tone={reuse.allowed ? "good" : "warn"}>{t(reuse.allowed ? "reuse.allowed" : "reuse.refused")}</Badge>
          </p>
          <p class={styles.small}>
            <Said text={reuse.reason} statements={reuse.reason_statements} />
          </p>
        </section>
        <section class={styles.block}>
          <h2>{t("ready.title")}</h2>
          <p>
            <Badge tone={readiness.ready_for_training ? "good" : "neutral"}>
              {t(readiness.ready_for_training ? "ready.yes" : "ready.no")}
            </Badge>
          </p>
          <Bars
            label={t("ready.title")}
            bars={[
              {
                name: t("ready.interactions"),
                value: readiness.total_interactions,
                max: ENOUGH,
                text: `${formatNumber(readiness.total_interactions)} / ${formatNumber(ENOUGH)}`,
              },
              {
                name: t("ready.success"),
                value: readiness.data_quality_score,
                text: formatPercent(readiness.data_quality_score),
              },
            ]}
          />
        </section>
        {categories.length > 0 && (
          <section class={styles.block}>
            <h2>{t("stats.categories")}</h2>
            <Bars
              label={t("stats.categories")}
              bars={categories.map(([name, count]) => ({
                name: name || t("case.noCategory"),
                value: count,
                max: Math.max(...categories.map(([, other]) => other)),
                text: formatNumber(count),
              }))}
            />
          </section>
        )}
      </div>
    </section>
  );
}
