/** The case memory in sentences: how much it holds, what people say of it, and whether it is used; figures are folded. */
import type { components } from "../../api/schema";
import { Facts } from "../../parts/Facts";
import { Folded } from "../../parts/Folded";
import { Said } from "../../parts/Statements";
import { formatNumber, formatPercent } from "../../text/texts";
import { t } from "./text";
import styles from "./CasePage.module.css";

type Figures = components["schemas"]["StatsResponse"];
/** Interactions that training needs. */
const ENOUGH = 1000;

export function Statistics({ figures }: { figures: Figures }) {
  const { cbr_system_stats: system, neural_selector_readiness: readiness, performance, reuse } = figures;
  const { total_cases: cases, archived_cases: archived, total_usage_count: votes } = system;
  const decisions = reuse.correct + reuse.wrong;
  const categories = Object.entries(system.category_distribution);
  const milliseconds = formatNumber(Math.round(performance.current_avg_response_time_ms * 10) / 10);
  const facts = [
    [t("stats.categories"), categories.map(([name, n]) => `${name || t("case.noCategory")} ${n}`).join(", ") || "–"],
    [t("stats.quality"), cases > 0 ? formatPercent(system.average_quality_score) : "–"],
    [t("stats.time"), system.total_interactions > 0 ? `${milliseconds} ms` : "–"],
    [
      t("stats.training"),
      t("stats.trainingIs", {
        n: readiness.total_interactions,
        of: formatNumber(ENOUGH),
        p: formatPercent(readiness.data_quality_score),
      }),
    ],
    [t("stats.proof"), <Said key="proof" text={reuse.reason} statements={reuse.reason_statements} />],
  ] as const;
  return (
    <section class={styles.figures} aria-label={t("stats.title")}>
      <ul class={styles.sentences}>
        <li>
          {t("stats.cases", { n: cases })} {archived > 0 && t("stats.archived", { n: archived })}
        </li>
        <li>{votes > 0 ? t("stats.votes", { n: votes }) : t("stats.noVotes")}</li>
        <li>
          {t(reuse.allowed ? "reuse.allowed" : "reuse.refused")}{" "}
          {decisions > 0 && t("reuse.right", { right: reuse.correct, n: decisions })}
        </li>
      </ul>
      <Folded title={t("stats.details")}>
        <Facts facts={facts} wideLast />
      </Folded>
    </section>
  );
}
