/** The one agent of a public key, with the branches that it answers from. */
import { useId } from "preact/hooks";
import { useResource } from "../../state/resource";
import { href } from "../../state/router";
import { api } from "../../api/client";
import { Loaded } from "../../parts/States";
import { t } from "./text";
import styles from "./NewKey.module.css";

/** The route lists at most so many. */
const MOST_AGENTS = 500;

export function AgentPicker({ value, onPick }: { value: string; onPick: (id: string) => void }) {
  const id = useId();
  const agents = useResource((signal) => api.get("/agents", { query: { limit: MOST_AGENTS, offset: 0 }, signal }), []);
  return (
    <Loaded resource={agents} lines={1}>
      {({ agents: rows }) => {
        const picked = rows.find((row) => row.agent_id === value);
        if (rows.length === 0)
          return (
            <p>
              {t("new.noAgents")} <a href={href("agents", { path: ["new"] })}>{t("new.createAgent")}</a>
            </p>
          );
        return (
          <div class={styles.agent}>
            <label for={id}>{t("new.agent")}</label>
            <select
              id={id}
              value={value}
              aria-describedby={`${id}-hint`}
              onChange={(event) => onPick(event.currentTarget.value)}
            >
              <option value="">{t("new.pickAgent")}</option>
              {rows.map((row) => (
                <option key={row.agent_id} value={row.agent_id}>
                  {`${row.name} (${row.agent_id.slice(0, 8)})`}
                </option>
              ))}
            </select>
            <p id={`${id}-hint`} class={styles.hint}>
              {picked
                ? t("new.agentReads", {
                    branches: picked.allowed_category_paths.map((path) => path.join(" › ")).join(", "),
                  })
                : t("new.agentHint")}
            </p>
          </div>
        );
      }}
    </Loaded>
  );
}
