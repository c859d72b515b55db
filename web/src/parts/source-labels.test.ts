import { expect, test } from "vitest";
import { distinctLabels, type Labelled } from "./source-labels";

const source = (change: Partial<Labelled> = {}): Labelled => ({
  label: "Handbook",
  document_id: "d1",
  display: "Ask your manager first.",
  address: "file:///docs/hand%20book.pdf",
  page: null,
  ...change,
});
const labels = (...sources: Labelled[]) => distinctLabels(sources, (page) => `Page ${page}`);

test("labels that differ stay as they are, and so does the only one", () => {
  expect(labels(source(), source({ label: "Handbook, Leave" }))).toEqual(["Handbook", "Handbook, Leave"]);
});

test("equal labels get the file, the page, or the first words of the quotation", () => {
  expect(labels(source(), source({ document_id: "d2", address: "https://h/other.pdf?x" }))).toEqual([
    "Handbook · hand book.pdf",
    "Handbook · other.pdf",
  ]);
  expect(labels(source({ page: 1 }), source({ page: 2 }))).toEqual(["Handbook · Page 1", "Handbook · Page 2"]);
  expect(labels(source({ display: "Moving house | 1" }), source({ display: "가".repeat(60) }))).toEqual([
    "Handbook · “Moving house”",
    `Handbook · “${"가".repeat(40)}…”`,
  ]);
  const [first, second, other] = labels(
    source({ page: 1 }),
    source({ page: 1, display: "Then go." }),
    source({ page: 2 }),
  );
  expect([first, second]).toEqual(["Handbook · Page 1 · “Ask your manager first.”", "Handbook · Page 1 · “Then go.”"]);
  expect(other).toBe("Handbook · Page 2");
});
