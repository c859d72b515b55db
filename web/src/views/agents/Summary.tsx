/** What an agent sees, does and may cost, and how it is asked, in sentences. */
import { useResource } from "../../state/resource";
import { href } from "../../state/router";
import { api } from "../../api/client";
import type { Branch } from "../../parts/branches";
import { Loaded } from "../../parts/States";
import { formatNumber, formatPercent } from "../../text/texts";
import { Branches } from "./Branches";
import type { Agent } from "./state";
import { t } from "./text";
import { nameOfTool } from "./tools";
import styles from "./Agents.module.css";

/** What belongs together is one request to wait for. */
async function load(agent_id: string, signal: AbortSignal) {
  const options = { path: { agent_id }, signal };
  const [reach, spending] = await Promise.all([
    api.get("/agents/{agent_id}/reach", options),
    api.get("/agents/{agent_id}/spending", options),
  ]);
  return { reach, spending };
}

export function Summary({ agent, tree }: { agent: Agent; tree: readonly Branch[] | undefined }) {
  const figures = useResource((signal) => load(agent.agent_id, signal), [agent.agent_id]);
  const { retrieval, features, mcp_tools_allowlist: tools, unresolved_paths: unresolved } = agent;
  const address = `${location.origin}/mcp/agents/${agent.agent_id}`;
  return (
    <Loaded resource={figures}>
      {({ reach, spending }) => (
        <ul class={styles.summary}>
          <li>
            {t("summary.reads")} <Branches agent={agent} tree={tree} />
            {" · "}
            {t("form.documents", { n: reach.documents, passages: reach.passages })}
          </li>
          {unresolved.length > 0 && (
            <li class={styles.warn}>{t("page.unresolved", { names: unresolved.join(", ") })}</li>
          )}
          <li>
            {t("summary.depth", {
              words: retrieval.bm25_topk,
              meaning: retrieval.vector_topk,
              best: retrieval.rerank.final_topk,
            })}
          </li>
          <li>
            {t("summary.review", { p: formatPercent(Number(features.hitl_below_conf)) })}{" "}
            {features.debate === true && t("summary.debate")}
          </li>
          <li>
            {tools.length > 0 ? t("summary.tools", { names: tools.map(nameOfTool).join(", ") }) : t("summary.noTools")}
          </li>
          <li>
            {t("summary.cost", {
              tokens: formatNumber(spending.tokens_per_day),
              won: formatNumber(spending.krw_per_day),
              usedTokens: formatNumber(spending.tokens),
              usedWon: formatNumber(spending.krw),
            })}
          </li>
          <li>
            <a href={href("ask", { query: { agent: agent.agent_id } })}>{t("page.askView")}</a>
            {". "}
            {t("summary.model")} <code>{`agent:${agent.name}`}</code>. {t("summary.mcp")} <code>{address}</code>
          </li>
        </ul>
      )}
    </Loaded>
  );
}
