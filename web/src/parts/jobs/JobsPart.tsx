/** The jobs of the caller: those that have not ended, that failed, and those of the last day. */
import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../../api/client";
import { asProblem, type Problem } from "../../api/problem";
import { Badge, type Tone } from "../Badge";
import { Meter } from "../Bars";
import { Button } from "../Button";
import { ProblemText, Said } from "../Statements";
import { announce } from "../../state/announce";
import { useResource } from "../../state/resource";
import { href } from "../../state/router";
import { endedSince, isOpen, nameOf, readJobs, reasonsOf, stateOf, type Job } from "./jobs";
import { t } from "./text";
import styles from "./JobsPart.module.css";

const POLL_MS = 2000;

interface Props {
  /** Only jobs of this kind. */
  kind?: string;
  /** They are read again when this changes. */
  added: number;
  onEnded: (jobs: readonly Job[]) => void;
}

export function JobsPart({ kind: only, added, onEnded }: Props) {
  const read = (signal: AbortSignal) => readJobs(signal, only);
  const { data: jobs = [], problem, loading, reload } = useResource(read, [added, only]);
  const [refusal, setRefusal] = useState<Problem | null>(null);
  const summary = useRef<HTMLElement>(null);
  const before = useRef<readonly Job[]>([]);
  const open = useRef(false);
  const active = jobs.filter(isOpen).length;
  const failed = jobs.filter(({ state }) => state === "failed").length;
  open.current ||= active + failed > 0; // what ends while it is read stays to be seen
  useEffect(() => {
    const ended = endedSince(before.current, jobs);
    before.current = jobs;
    if (ended.length) announce(ended.map((job) => `${nameOf(job)}: ${stateOf(job)}.`).join(" "));
    if (ended.length) onEnded(ended);
  }, [jobs]);
  useEffect(() => {
    if (loading || active === 0) return;
    const look = () => document.hidden || reload();
    const timer = setTimeout(look, POLL_MS + (problem?.retryAfter ?? 0) * 1000);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [loading, active]);

  const trouble = refusal ?? problem;
  if (jobs.length === 0 && !trouble) return null;
  const change = async ({ job_id }: Job, action: "cancel" | "retry") => {
    summary.current?.focus(); // the button that was used goes away
    setRefusal(null);
    try {
      await api.post(`/jobs/{job_id}/${action}`, { path: { job_id } });
    } catch (error) {
      setRefusal(asProblem(error));
    }
    reload();
  };
  return (
    <details class={styles.jobs} open={open.current}>
      <summary ref={summary}>
        {t("jobs.title")} {active > 0 && <Badge tone="accent">{t("jobs.active", { n: active })}</Badge>}{" "}
        {failed > 0 && <Badge tone="bad">{t("jobs.failedCount", { n: failed })}</Badge>}
      </summary>
      {trouble && (
        <p role="alert">
          <ProblemText problem={trouble} otherwise={t("jobs.unreachable")} />
        </p>
      )}
      <div class={styles.list} tabIndex={0} role="region" aria-label={t("jobs.title")}>
        <ul>
          {jobs.map((job) => (
            <Row key={job.job_id} job={job} onChange={change} />
          ))}
        </ul>
      </div>
    </details>
  );
}

const TONES: Record<Job["state"], Tone> = {
  waiting: "neutral",
  running: "accent",
  done: "good",
  failed: "bad",
  cancelled: "neutral",
};

interface RowProps {
  job: Job;
  onChange: (job: Job, action: "cancel" | "retry") => Promise<void>;
}

function Row({ job, onChange }: RowProps) {
  const { state, done, total } = job;
  const name = nameOf(job);
  const link = resultOf(job);
  return (
    <li>
      <div class={styles.row}>
        <span class={styles.name}>{link ? <a href={link}>{name}</a> : name}</span>
        {total > 0 && isOpen(job) && <Meter value={done} max={total} />}
        {total > 0 && state !== "failed" && <span>{`${done}/${total}`}</span>}
        <Badge tone={TONES[state]}>{stateOf(job)}</Badge>
        {state === "failed" && (
          <Button
            small
            kind="bare"
            icon="retry"
            label={t("jobs.retry", { name })}
            onClick={() => void onChange(job, "retry")}
          />
        )}
        {isOpen(job) && (
          <Button
            small
            kind="bare"
            icon="stop"
            label={t("jobs.cancel", { name })}
            onClick={() => void onChange(job, "cancel")}
          />
        )}
      </div>
      {reasonsOf(job).map((text) => (
        <p key={text}>
          <Said text={text} statements={[]} />
        </p>
      ))}
    </li>
  );
}

/** The address of the only document that a job wrote, or of the run that it kept. */
function resultOf({ result }: Job): string | null {
  const [document, ...more] = (result?.document_ids ?? []) as string[];
  if (document && !more.length) return href("documents", { path: [document] });
  return typeof result?.run_id === "string" ? href("evaluation", { path: [result.run_id] }) : null;
}
