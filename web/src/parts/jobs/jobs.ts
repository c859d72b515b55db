/** Jobs: stored work of the service, such as large uploads. It goes on when the page is closed. */
import { api } from "../../api/client";
import type { components } from "../../api/schema";
import { t as common } from "../../text/common";
import { t } from "./text";

export type Job = components["schemas"]["JobShape"];

const DAY_MS = 86_400_000;
const MOST = 50;
const KINDS = ["ingest", "vectors", "imagined", "backup"] as const;

/** Those that run or failed, also when many later ones wait; and the newest. */
export async function readJobs(signal: AbortSignal, kind?: string): Promise<Job[]> {
  const some = async (state?: Job["state"][]) =>
    (await api.get("/jobs", { query: { state, kind, limit: MOST }, signal })).jobs;
  return shown([...(await some(["running", "failed"])), ...(await some())], Date.now());
}

/**
 * Those that run, then the newest first; of those that ended well or were cancelled only the ones of the last day.
 *
 * Of what the service does by itself only failures are shown. Of two readings of a job the later one counts.
 */
export function shown(read: readonly Job[], now: number): Job[] {
  return [...new Map(read.map((job) => [job.job_id, job])).values()]
    .filter(({ maker, state }) => maker || state === "failed")
    .filter((job) => isOpen(job) || job.state === "failed" || now - Date.parse(job.ended_at ?? "") < DAY_MS)
    .sort((a, b) => order(b) - order(a) || Date.parse(b.created_at) - Date.parse(a.created_at));
}

const order = ({ state }: Job) => Number(state === "running");

export const isOpen = ({ state }: Job): boolean => state === "waiting" || state === "running";

/** Those that had not ended before. */
export const endedSince = (before: readonly Job[], now: readonly Job[]): Job[] =>
  now.filter((job) => !isOpen(job) && before.some((earlier) => earlier.job_id === job.job_id && isOpen(earlier)));

export const stateOf = ({ state }: Job): string => t(`jobs.${state}`);

/** What it does, with its files. */
export function nameOf({ kind, files: [name, ...more] }: Job): string {
  const known = KINDS.find((each) => each === kind);
  const what = kind === "evaluation" ? common("view.evaluation") : known ? t(`jobs.${known}`) : kind;
  const files = name && (more.length ? `${name} +${more.length}` : name);
  return [what, files].filter(Boolean).join(": ");
}

/** Why it failed, or why some of its files did. */
export function reasonsOf({ reason, result }: Job): string[] {
  const failed = (result?.failed ?? []) as { file: string; reason: string }[];
  return reason ? [reason] : failed.map((each) => `${each.file}: ${each.reason}`);
}
