/** A question to the agent, with its answer and the sources; the question is in the address. */
import { useRef } from "preact/hooks";
import { useResource } from "../../state/resource";
import { href } from "../../state/router";
import { api } from "../../api/client";
import type { components } from "../../api/schema";
import { Badge } from "../../parts/Badge";
import { Button } from "../../parts/Button";
import { Markdown } from "../../parts/Markdown";
import { Loaded } from "../../parts/States";
import { formatPercent } from "../../text/texts";
import { address } from "./state";
import { partNames } from "../../text/part-names";
import { sayStatement } from "../../state/statements";
import { t } from "./text";
import styles from "./Agents.module.css";

type Answer = components["schemas"]["AgentAskResponse"];
const LONGEST = 10_000;

export function TestQuestion({ id }: { id: string }) {
  const { q } = address.read();
  const box = useRef<HTMLInputElement>(null);
  const answer = useResource(
    q
      ? (signal) => api.post("/agents/{agent_id}/ask", { path: { agent_id: id }, body: { question: q }, signal })
      : null,
    [id, q],
  );
  const ask = () => {
    const question = box.current?.value.trim() ?? "";
    if (!question) box.current?.focus();
    else if (question === q) answer.reload();
    else address.set({ q: question });
  };
  return (
    <section class={styles.form} aria-labelledby="agent-test">
      <h2 id="agent-test">{t("ask.title")}</h2>
      <form
        key={q}
        class={styles.row}
        onSubmit={(event) => {
          event.preventDefault();
          ask();
        }}
      >
        <label class="quiet" for="agent-question">
          {t("ask.question")}
        </label>
        <input
          id="agent-question"
          class={styles.question}
          ref={box}
          defaultValue={q}
          maxLength={LONGEST}
          placeholder={t("ask.question")}
          autocomplete="off"
        />
        <Button type="submit" kind="main">
          {t("ask.ask")}
        </Button>
      </form>
      {q &&
        (answer.loading && !answer.problem ? (
          <Waiting />
        ) : (
          <Loaded resource={answer}>{(data) => <Shown answer={data} />}</Loaded>
        ))}
    </section>
  );
}

const Waiting = () => <p role="status">{t("ask.waiting")}</p>;

function Shown({ answer }: { answer: Answer }) {
  const decision = answer.decision === "answer" || answer.decision === "review" ? answer.decision : "abstain";
  return (
    <article class={styles.form} aria-label={t("ask.answer")}>
      <p class={styles.row}>
        <Badge tone={decision === "answer" ? "good" : "warn"}>{t(`decision.${decision}`)}</Badge>
        <span>{t("ask.confidence", { value: formatPercent(answer.confidence) })}</span>
      </p>
      {answer.hitl_required && <p>{t("ask.review")}</p>}
      {answer.unfinished && <p class={styles.warn}>{t("ask.unfinished")}</p>}
      {answer.degraded.length > 0 && (
        <p class={styles.warn}>{t("ask.degraded", { names: partNames(answer.degraded) })}</p>
      )}
      {answer.model ? <Markdown text={answer.text} /> : <p class={styles.plain}>{answer.text}</p>}
      {answer.note_statements.map(sayStatement).map(({ text, lang }) => (
        <p key={text} class={styles.small} lang={lang}>
          {text}
        </p>
      ))}
      {answer.citations.length > 0 && (
        <section aria-labelledby="agent-sources">
          <h3 id="agent-sources">{t("ask.sources")}</h3>
          <ul class={styles.sources}>
            {answer.citations.map((source) => (
              <li key={source.number}>
                [{source.number}] <a href={href("documents", { path: [source.document_id] })}>{source.label}</a>
                <blockquote class={styles.plain}>{source.display}</blockquote>
              </li>
            ))}
          </ul>
        </section>
      )}
      <p>
        <a href={href("trace", { path: [answer.trace_id] })}>{t("ask.trace")}</a>
      </p>
    </article>
  );
}
