/** How one answer was made. Its address is its permanent link. */
import type { ComponentChildren } from "preact";
import { useResource } from "../../state/resource";
import { href } from "../../state/router";
import { api } from "../../api/client";
import { Badge } from "../../parts/Badge";
import { CopyButton } from "../../parts/CopyButton";
import { Facts } from "../../parts/Facts";
import { Page } from "../../parts/Page";
import { QuotedAnswer } from "../../parts/QuotedText";
import { Failure, Loading } from "../../parts/States";
import { formatDateTime, formatNumber, formatPercent, formatSeconds } from "../../text/texts";
import { Calls } from "./Calls";
import { DebateColumns } from "./DebateColumns";
import { Decision } from "./Decision";
import { Documents } from "./Documents";
import { partNames } from "../../text/part-names";
import { Replay } from "./Replay";
import { t } from "./text";
import { titleOfTrace } from "./titles";
import { debateOf, toolCalls, usageOf, type ToolCall, type Trace } from "./trace-facts";
import { Waterfall } from "./Waterfall";
import styles from "./TracePage.module.css";

export function TracePage({ id }: { id: string }) {
  const trace = useResource((signal) => api.get("/traces/{trace_id}", { path: { trace_id: id }, signal }), [id]);
  if (trace.problem || !trace.data) {
    return (
      <Page title={t("trace.one")} actions={<a href={href("trace")}>{t("trace.all")}</a>}>
        {trace.problem ? <Failure problem={trace.problem} onRetry={trace.reload} /> : <Loading lines={8} />}
      </Page>
    );
  }
  return <Shown trace={trace.data} />;
}

function Shown({ trace }: { trace: Trace }) {
  const debate = debateOf(trace.debate);
  const tools = toolCalls(trace.steps);
  return (
    <Page
      title={titleOfTrace(trace)}
      actions={
        <>
          <a class={styles.action} href={href("trace")}>
            {t("trace.all")}
          </a>
          {trace.question && (
            <a class={styles.action} href={href("ask", { query: { q: trace.question } })}>
              {t("trace.askAgain")}
            </a>
          )}
          <CopyButton small={false} text={() => location.href} label={t("trace.copyLink")} />
        </>
      }
    >
      <Overview trace={trace} />
      {trace.answer && (
        <Section title={t("trace.answer")}>
          <div class={styles.answer}>
            <QuotedAnswer text={trace.answer} sources={[]} />
          </div>
        </Section>
      )}
      {!trace.answer && !trace.question && <p class={styles.hint}>{t("trace.noTexts")}</p>}
      <Section title={t("replay.title")}>
        <Replay trace={trace} />
      </Section>
      <Section title={t("trace.steps")}>
        {trace.calls.length > 0 && <p class={styles.hint}>{t("step.legend")}</p>}
        <Waterfall trace={trace} />
      </Section>
      {tools.length > 0 && (
        <Section title={t("trace.tools")}>
          <Tools tools={tools} />
        </Section>
      )}
      {debate && (
        <Section title={t("debate.title")}>
          <DebateColumns debate={debate} />
        </Section>
      )}
      <Section title={t("trace.modelCalls")}>
        <Calls calls={trace.calls} />
      </Section>
      <Section title={t("trace.documents")}>
        <Documents trace={trace} />
      </Section>
    </Page>
  );
}

function Section({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class={styles.section}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

function Overview({ trace }: { trace: Trace }) {
  const usage = usageOf(trace.calls);
  const facts: [string, ComponentChildren][] = [
    [t("trace.decision"), <Decision decision={trace.decision} />],
    [t("trace.confidence"), formatPercent(trace.confidence)],
    [t("trace.time"), formatSeconds(trace.seconds)],
    [t("trace.cost"), t("trace.won", { n: Math.round(usage.cost * 100) / 100 })],
    [t("trace.tokens"), t("trace.tokensAre", { input: formatNumber(usage.input), output: formatNumber(usage.output) })],
    [t("trace.when"), formatDateTime(trace.created_at)],
    [t("trace.version"), trace.taxonomy_version],
    [t("trace.id"), <code>{trace.trace_id}</code>],
  ];
  return (
    <div class={styles.section}>
      <Facts facts={facts} />
      {trace.degraded.length > 0 && (
        <p class={styles.degraded}>{t("trace.degradedWhy", { parts: partNames(trace.degraded) })}</p>
      )}
    </div>
  );
}

function Tools({ tools }: { tools: readonly ToolCall[] }) {
  return (
    <ul class={styles.tools}>
      {tools.map(({ name, success }) => (
        <li key={name}>
          <code>{name}</code>{" "}
          <Badge tone={success === null ? "neutral" : success ? "good" : "bad"}>
            {t(success === null ? "tool.planned" : success ? "tool.done" : "tool.failed")}
          </Badge>
        </li>
      ))}
    </ul>
  );
}
