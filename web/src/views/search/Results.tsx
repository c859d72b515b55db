/** The hits of a search with its times, best first. */
import type { components } from "../../api/schema";
import { Badge } from "../../parts/Badge";
import { Bars } from "../../parts/Bars";
import { Button } from "../../parts/Button";
import { StatementItems } from "../../parts/Statements";
import { Empty } from "../../parts/States";
import { partNames } from "../../text/part-names";
import { formatSeconds } from "../../text/texts";
import { Expansions } from "./Expansions";
import { HitCard } from "./HitCard";
import { address, filterCount, MOST_HITS, type SearchState } from "./state";
import { t, type SearchKey } from "./text";
import styles from "./Results.module.css";

type Response = components["schemas"]["SearchResponse"];
type Metrics = Response["metrics"];

interface Props {
  response: Response;
  state: SearchState;
  onClear: () => void;
}

export function Results({ response, state, onClear }: Props) {
  const { results, metrics } = response;
  return (
    <section class={styles.results} aria-labelledby="results-title">
      <div class={styles.head}>
        <h2 id="results-title">{t("search.found", { n: results.length })}</h2>
        <p class={styles.facts}>
          {t("search.facts", {
            lexical: metrics.bm25_candidates,
            vector: metrics.vector_candidates,
            time: formatSeconds(metrics.total_time),
          })}{" "}
          {metrics.cache_hit && <Badge>{t("search.cached")}</Badge>}
        </p>
      </div>
      <Notices metrics={metrics} />
      <Times metrics={metrics} />
      <Expansions expansions={metrics.expansions} />
      {results.length === 0 ? (
        <Empty title={t("search.none")} text={filterCount(state) > 0 ? t("search.noneFiltered") : t("search.noneHelp")}>
          {filterCount(state) > 0 && <Button onClick={onClear}>{t("filters.clear")}</Button>}
        </Empty>
      ) : (
        <ol class={styles.list}>
          {results.map((hit, index) => (
            <li key={hit.chunk_id}>
              <HitCard hit={hit} position={index + 1} query={state.q} />
            </li>
          ))}
        </ol>
      )}
      {results.length >= state.k && state.k < MOST_HITS && (
        <div>
          <Button onClick={() => address.set({ k: Math.min(MOST_HITS, state.k * 2) }, { replace: true })}>
            {t("search.more", { n: Math.min(MOST_HITS, state.k * 2) })}
          </Button>
        </div>
      )}
    </section>
  );
}

function Notices({ metrics }: { metrics: Metrics }) {
  if (metrics.degraded.length === 0 && metrics.notes.length === 0) return null;
  return (
    <ul class={styles.notices}>
      {metrics.degraded.length > 0 && (
        <li class={styles.degraded}>{t("search.degraded", { parts: partNames(metrics.degraded) })}</li>
      )}
      <StatementItems statements={metrics.note_statements} />
    </ul>
  );
}

const TIMES = ["embedding", "lexical", "vector", "fusion", "rerank", "fetch"] as const;

function Times({ metrics }: { metrics: Metrics }) {
  const seconds: Record<(typeof TIMES)[number], number> = {
    embedding: metrics.embedding_time,
    lexical: metrics.bm25_time,
    vector: Math.max(0, metrics.vector_time - metrics.embedding_time),
    fusion: metrics.fusion_time,
    rerank: metrics.rerank_time,
    fetch: metrics.fetch_time,
  };
  return (
    <details class={styles.times}>
      <summary>{t("times.title")}</summary>
      <Bars
        label={t("times.title")}
        bars={TIMES.map((name) => ({
          name: t(`times.${name}` satisfies SearchKey),
          value: seconds[name],
          max: metrics.total_time,
          text: formatSeconds(seconds[name]),
        }))}
      />
    </details>
  );
}
