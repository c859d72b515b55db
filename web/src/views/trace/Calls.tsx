/** The calls of language models with what each cost, and what was sent and received where texts are kept. */
import { Badge } from "../../parts/Badge";
import { CopyButton } from "../../parts/CopyButton";
import { stepName } from "../../text/part-names";
import { formatNumber, formatSeconds } from "../../text/texts";
import { t } from "./text";
import { usageOf, type Call } from "./trace-facts";
import styles from "./Calls.module.css";

export function Calls({ calls }: { calls: readonly Call[] }) {
  if (calls.length === 0) return <p class={styles.none}>{t("calls.none")}</p>;
  const usage = usageOf(calls);
  const kept = calls.some((call) => call.prompt || call.reply);
  return (
    <div class={styles.calls}>
      <p class={styles.none}>
        {t("calls.sum", {
          n: usage.calls,
          input: formatNumber(usage.input),
          output: formatNumber(usage.output),
          cost: Math.round(usage.cost * 100) / 100,
        })}{" "}
        {!kept && t("calls.notKept")}
      </p>
      <ol>
        {calls.map((call, index) => (
          <li key={index}>
            <CallDetails call={call} number={index + 1} />
          </li>
        ))}
      </ol>
    </div>
  );
}

function CallDetails({ call, number }: { call: Call; number: number }) {
  const line = (
    <>
      <strong>{t("calls.call", { n: number, step: stepName(call.step) })}</strong> <span>{call.model}</span>{" "}
      <span>
        {formatSeconds(call.seconds)}
        {call.started !== null && ` (${t("calls.at", { time: formatSeconds(call.started) })})`}
      </span>{" "}
      <span>
        {t("trace.tokensAre", { input: formatNumber(call.input_tokens), output: formatNumber(call.output_tokens) })}
      </span>{" "}
      <span>{t("trace.won", { n: Math.round(call.cost * 100) / 100 })}</span>{" "}
      {call.error && <Badge tone="bad">{t("calls.failed")}</Badge>}
    </>
  );
  if (!call.prompt && !call.reply && !call.error) return <p class={styles.line}>{line}</p>;
  return (
    <details class={styles.call}>
      <summary>{line}</summary>
      {call.error && <p class={styles.error}>{call.error}</p>}
      {call.prompt && <Kept title={t("calls.prompt")} text={call.prompt} />}
      {call.reply && <Kept title={t("calls.reply")} text={call.reply} />}
    </details>
  );
}

function Kept({ title, text }: { title: string; text: string }) {
  return (
    <div class={styles.kept}>
      <div class={styles.head}>
        <h3>{title}</h3>
        <CopyButton text={text} />
      </div>
      <pre tabIndex={0} aria-label={title} role="region">
        {text}
      </pre>
    </div>
  );
}
