import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Problem } from "../../api/problem";
import { announcement } from "../../state/announce";
import type { Found } from "./files";
import { addFiles, clear, counts, failuresAsCsv, items, move, pause, retryAll, skipped } from "./uploads";

const send = vi.hoisted(() => vi.fn());
vi.mock("../../api/client", async (original) => ({ ...(await original<object>()), upload: send }));

const found = (...paths: string[]): Found => ({
  files: paths.map((path) => ({ path, file: new File(["text"], path.split("/").at(-1) ?? "") })),
  skipped: new Map(),
  unreadable: [],
});
const added = (file: string) => ({
  documents: [{ document_id: `id-${file}`, file, unchanged: false }],
  failed: [],
  notes: [],
});

beforeEach(() => {
  send.mockReset();
});
afterEach(clear);

test("a file without a category is sent again with one", async () => {
  const placement = { taxonomy_path: ["HR"], confidence: 0.5, hitl: true, reasons: [], reason_statements: [] };
  const document = { document_id: "id", file: "a.md", unchanged: false, placement };
  send.mockResolvedValue({ documents: [document], failed: [], notes: [] });
  addFiles(found("a.md"), "");
  await vi.waitFor(() => expect(items.value[0]?.state).toMatchObject({ kind: "done", placement }));
  move(items.value[0]?.id ?? 0, "HR/Leave");
  await vi.waitFor(() => expect(items.value[0]?.state.kind).toBe("done"));
  const forms = send.mock.calls.map((call) => (call[1] as { form: FormData }).form);
  expect(forms.map((form) => form.get("category"))).toEqual([null, "HR/Leave"]);
  expect(await (forms[1]?.get("files") as File).text()).toBe("text");
});

test("files are sent two at a time, and a failed one can be tried again", async () => {
  const releases: (() => void)[] = [];
  send.mockImplementation(() => new Promise((resolve) => releases.push(() => resolve(added("x")))));
  addFiles(found("a.md", "b.md", "c.md"), "HR");
  expect(counts.value).toMatchObject({ active: 2, waiting: 1 });
  send.mockImplementation(() =>
    Promise.resolve({ documents: [], failed: [{ file: "c.md", reason: "No text." }], notes: [] }),
  );
  releases.forEach((release) => release());
  await vi.waitFor(() => expect(counts.value).toMatchObject({ done: 2, failed: 1 }));
  expect(failuresAsCsv()).toContain('"c.md","No text."');
  send.mockImplementation(() => Promise.resolve(added("c.md")));
  retryAll();
  await vi.waitFor(() => expect(counts.value).toMatchObject({ done: 3, failed: 0 }));
});

test("the content of a file is released when it is uploaded into a category, not before", async () => {
  send.mockImplementationOnce(() =>
    Promise.resolve({ documents: [], failed: [{ file: "b.md", reason: "No text." }], notes: [] }),
  );
  send.mockImplementation(() => Promise.resolve(added("a.md")));
  addFiles(found("b.md", "a.md"), "HR");
  await vi.waitFor(() => expect(counts.value).toMatchObject({ done: 1, failed: 1 }));
  expect(items.value.map((item) => [item.file.name, item.file.size])).toEqual([
    ["b.md", 4],
    ["a.md", 0],
  ]);
});

test("of two files with one name in a category, the second is refused with the reason", async () => {
  send.mockImplementation(() => Promise.resolve(added("a.md")));
  addFiles(found("x/a.md", "y/a.md"), "");
  await vi.waitFor(() => expect(counts.value).toMatchObject({ done: 1, failed: 1 }));
  expect(items.value[1]?.state).toMatchObject({ kind: "failed" });
  expect(failuresAsCsv()).toContain("x/a.md");
});

test("an overloaded service makes the queue wait, not fail", async () => {
  send.mockRejectedValueOnce(new Problem("busy", "Too many.", 429, "RateLimited", null, 0));
  send.mockImplementation(() => Promise.resolve(added("a.md")));
  addFiles(found("a.md"), "");
  const pauses: (string | undefined)[] = [];
  const stop = pause.subscribe((problem) => void pauses.push(problem?.kind));
  await vi.waitFor(() => expect(counts.value.done).toBe(1));
  stop();
  expect(send).toHaveBeenCalledTimes(2);
  expect(pauses).toEqual([undefined, "busy", undefined]);
});

test("cells of the list cannot become formulas of a spreadsheet", () => {
  send.mockImplementation(() => new Promise(() => undefined));
  addFiles(
    { files: [], skipped: new Map([[".png", ["=cmd().png"]]]), unreadable: [{ path: "-a", reason: 'is "locked"' }] },
    "",
  );
  expect(failuresAsCsv()).toContain(`"'-a","is ""locked"""`);
  expect(failuresAsCsv()).toContain(`"'=cmd().png"`);
  expect(skipped.value.size).toBe(1);
});

test("when only files of kinds that are not read were chosen, this is said", () => {
  addFiles({ files: [], skipped: new Map([[".png", ["a.png", "b.png"]]]), unreadable: [] }, "");
  expect(announcement.value.text).toBe("2 files of kinds that are not read: .png (2)");
  expect([items.value.length, skipped.value.size]).toEqual([0, 1]);
  clear();
});
