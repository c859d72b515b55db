import { expect, test } from "vitest";
import { language } from "../../text/language";
import { endedSince, nameOf, reasonsOf, shown, type Job } from "./jobs";

const NOW = Date.parse("2026-01-10T12:00:00Z");
const job = (job_id: string, state: Job["state"], given: Partial<Job> = {}): Job => ({
  job_id,
  state,
  kind: "ingest",
  files: ["a.md"],
  maker: "kim",
  reason: "",
  result: null,
  attempts: 1,
  done: 0,
  total: 0,
  created_at: "2026-01-10T11:00:00Z",
  run_at: "2026-01-10T11:00:00Z",
  started_at: null,
  ended_at: state === "waiting" || state === "running" ? null : "2026-01-10T11:00:00Z",
  ...given,
});
const ids = (jobs: readonly Job[]) => jobs.map(({ job_id }) => job_id);

test("what runs comes first, then the newest; old ends and the service's own work are left out", () => {
  const read = [
    job("runs", "running", { created_at: "2026-01-10T09:00:00Z" }),
    job("later", "waiting", { created_at: "2026-01-10T11:30:00Z" }),
    job("ended", "done"),
    job("old", "done", { ended_at: "2026-01-09T11:59:00Z" }),
    job("own", "waiting", { maker: "" }),
    job("broken", "failed", { ended_at: "2026-01-05T00:00:00Z", created_at: "2026-01-05T00:00:00Z", maker: "" }),
  ];
  expect(ids(shown(read, NOW))).toEqual(["runs", "later", "ended", "broken"]);
});

test("of two readings of a job the later one counts", () => {
  const [only, ...more] = shown([job("a", "running"), job("a", "done")], NOW);
  expect([only?.state, more.length]).toEqual(["done", 0]);
});

test("a job has ended when it was seen before it ended", () => {
  const before = [job("a", "running"), job("b", "waiting"), job("c", "failed")];
  const now = [job("a", "done"), job("b", "running"), job("c", "failed"), job("d", "done")];
  expect(ids(endedSince(before, now))).toEqual(["a"]);
});

test("names and reasons are in words", () => {
  const result = { failed: [{ file: "b.pdf", reason: "It is damaged." }] };
  const two = job("a", "done", { files: ["a.md", "b.pdf"], result });
  expect([nameOf(two), reasonsOf(two)]).toEqual(["Upload: a.md +1", ["b.pdf: It is damaged."]]);
  expect(reasonsOf(job("b", "failed", { reason: "No room.", result }))).toEqual(["No room."]); // it names the files, too
  expect(nameOf(job("c", "done", { kind: "other", files: [] }))).toBe("other");
  expect(nameOf(job("c", "done", { kind: "evaluation", files: [] }))).toBe("Evaluation");
  language.value = "ko";
  expect(nameOf(job("d", "done", { kind: "backup", files: [] }))).toBe("백업");
  language.value = "en";
});
