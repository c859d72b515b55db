/** The queue of uploads. It goes on while other views are open, and ends with the session. */
import { computed, signal } from "@preact/signals";
import { upload } from "../../api/client";
import { asProblem, isAbort, type Problem } from "../../api/problem";
import { announce } from "../../state/announce";
import { whenSessionEnds } from "../../state/session";
import type { components } from "../../api/schema";
import type { Found, FoundFile } from "./files";
import { sayAll, type Statement } from "../../state/statements";
import { t } from "./text";

export type Placement = components["schemas"]["PlacementShape"];
export type UploadState =
  | { kind: "waiting" }
  | { kind: "sending"; share: number }
  | { kind: "reading" }
  | { kind: "done"; documents: string[]; unchanged: boolean; placement: Placement | null }
  | { kind: "failed"; reason: string; statements?: readonly Statement[] };

export interface Item extends FoundFile {
  id: number;
  category: string;
  state: UploadState;
}

/** The service has four places for uploads; two leave room for others. */
const AT_ONCE = 2;
const BUSY_WAIT_S = 5;
const MOST_WAITS = 5;

export const items = signal<readonly Item[]>([]);
export const skipped = signal<ReadonlyMap<string, readonly string[]>>(new Map());
/** Counts documents that were written, so that the list is read again. */
export const written = signal(0);
/** Why the queue waits, until the service has room again. */
export const pause = signal<Problem | null>(null);

export const counts = computed(() => {
  const of = (...kinds: UploadState["kind"][]) => items.value.filter((item) => kinds.includes(item.state.kind)).length;
  const sending = of("sending");
  return { waiting: of("waiting"), sending, active: sending + of("reading"), done: of("done"), failed: of("failed") };
});
export const busy = computed(() => counts.value.waiting + counts.value.active > 0);

let lastId = 0;
let abort = new AbortController();

export function addFiles(found: Found, category: string): void {
  const names = new Map(items.value.filter((item) => item.state.kind !== "failed").map((item) => [key(item), item]));
  const added = found.files.map((file): Item => {
    lastId += 1;
    const item: Item = { ...file, id: lastId, category, state: { kind: "waiting" } };
    const twin = names.get(key(item));
    if (twin && twin.path !== item.path)
      item.state = { kind: "failed", reason: t("upload.sameName", { path: twin.path }) };
    else names.set(key(item), item);
    return item;
  });
  const unreadable = found.unreadable.map(({ path, reason }): Item => {
    lastId += 1;
    return { id: lastId, file: new File([], path), path, category, state: { kind: "failed", reason } };
  });
  items.value = [...items.value, ...added, ...unreadable];
  const merged = new Map(skipped.value);
  for (const [suffix, paths] of found.skipped) merged.set(suffix, [...(merged.get(suffix) ?? []), ...paths]);
  skipped.value = merged;
  start();
  if (added.length + unreadable.length === 0 && found.skipped.size > 0) announce(skippedSentence(found.skipped));
}

export function skippedSentence(paths: ReadonlyMap<string, readonly string[]>): string {
  const kinds = [...paths].map(([suffix, of]) => `${suffix || t("upload.noSuffix")} (${of.length})`);
  return t("upload.skipped", { n: [...paths.values()].flat().length, kinds: kinds.join(", ") });
}

/** The service knows an upload by its name alone: of two with the same name the second would replace the first. */
const key = (item: FoundFile & { category: string }) => `${item.category}/${item.file.name.normalize("NFC")}`;

export function retry(ids: readonly number[]): void {
  items.value = items.value.map((item) =>
    ids.includes(item.id) && item.state.kind === "failed" ? { ...item, state: { kind: "waiting" } } : item,
  );
  start();
}

/** Sends a file without a category again, with one. */
export function move(id: number, category: string): void {
  items.value = items.value.map((item) => (item.id === id ? { ...item, category, state: { kind: "waiting" } } : item));
  start();
}

export const retryAll = () => retry(items.value.map((item) => item.id));

/** Stop what is being sent and forget the list; what was sent is read and stays. */
export function clear(): void {
  abort.abort();
  abort = new AbortController();
  items.value = [];
  skipped.value = new Map();
  pause.value = null;
}

whenSessionEnds(clear);

/** The failed files as a table that a spreadsheet opens. */
export function failuresAsCsv(): string {
  const cell = (text: string) => `"${text.replace(/^([=+\-@\t\r])/, "'$1").replace(/"/g, '""')}"`;
  const rows = items.value.flatMap((item) =>
    item.state.kind === "failed" ? [[item.path, failureOf(item.state).text].map(cell).join(",")] : [],
  );
  const unread = [...skipped.value.values()].flat().map((path) => [path, t("upload.notRead")].map(cell).join(","));
  return `\uFEFF${["file,reason", ...rows, ...unread].join("\r\n")}\r\n`;
}

/** Why a file failed, in the language of the page. */
export const failureOf = ({ reason, statements = [] }: Extract<UploadState, { kind: "failed" }>) =>
  sayAll(statements, reason);

function start(): void {
  while (counts.value.active < AT_ONCE && pause.value === null) {
    const next = items.value.find((item) => item.state.kind === "waiting");
    if (!next) break;
    set(next.id, { kind: "sending", share: 0 });
    void send(next, abort.signal);
  }
  if (items.value.length > 0 && !busy.value) announceEnd();
}

function announceEnd(): void {
  announce(t("upload.ended", { done: counts.value.done, failed: counts.value.failed }));
}

function set(id: number, state: UploadState): void {
  items.value = items.value.map((item) => (item.id === id ? { ...item, state } : item));
}

/** What was uploaded into a category is not needed again: without its content, the browser can free the file. */
function release(id: number): void {
  items.value = items.value.map((item) => (item.id === id ? { ...item, file: new File([], item.file.name) } : item));
}

async function send(item: Item, stop: AbortSignal, waits = 0): Promise<void> {
  const form = new FormData();
  if (item.category) form.append("category", item.category);
  form.append("files", item.file, item.file.name);
  const onProgress = (sent: number, total: number) =>
    set(item.id, sent < total ? { kind: "sending", share: sent / total } : { kind: "reading" });
  try {
    const result = await upload("/documents", { form, onProgress, signal: stop });
    const [failure] = result.failed;
    if (failure) {
      set(item.id, { kind: "failed", reason: failure.reason, statements: failure.reason_statements });
    } else {
      const documents = result.documents.map((document) => document.document_id);
      const unchanged = result.documents.every((document) => document.unchanged);
      set(item.id, { kind: "done", documents, unchanged, placement: result.documents[0]?.placement ?? null });
      if (item.category) release(item.id);
      if (!unchanged) written.value += 1;
    }
  } catch (error) {
    if (isAbort(error) || stop.aborted) return;
    const problem = asProblem(error);
    const mayWait = problem.kind === "busy" || problem.kind === "unavailable" || problem.kind === "unreachable";
    if (mayWait && waits < MOST_WAITS) return await waitFor(problem, item, stop, waits);
    const reason = problem.detail || t("upload.unreachable");
    set(item.id, { kind: "failed", reason, statements: problem.statements });
  }
  if (!stop.aborted) start();
}

/** The whole queue waits as long as the service says, then this file is tried again. */
async function waitFor(problem: Problem, item: Item, stop: AbortSignal, waits: number): Promise<void> {
  pause.value = problem;
  set(item.id, { kind: "sending", share: 0 });
  await new Promise((resolve) => setTimeout(resolve, (problem.retryAfter ?? BUSY_WAIT_S) * 1000));
  if (stop.aborted) return;
  pause.value = null;
  await send(item, stop, waits + 1);
}
