import { expect, test, vi } from "vitest";
import { Problem } from "../api/problem";
import { PageStore } from "./paged";

const rows = (offset: number, limit: number) => Array.from({ length: limit }, (_, index) => offset + index);

test("only the pages of the visible rows are requested", async () => {
  const load = vi.fn(({ offset, limit }: { offset: number; limit: number }) =>
    Promise.resolve({ rows: rows(offset, limit), total: 100_000 }),
  );
  const store = new PageStore<number>(load, () => undefined);
  store.show(0, 0);
  await vi.waitFor(() => expect(store.total).toBe(100_000));
  store.show(20_000, 20_010);
  store.show(99_950, 99_999);
  await vi.waitFor(() => expect(store.row(99_999)).toBe(99_999));
  expect(load.mock.calls.map(([page]) => page.offset)).toEqual([0, 99_900]);
  expect(store.row(20_000)).toBeUndefined();
});

test("a failed page is a problem until it is loaded again", async () => {
  const load = vi.fn().mockRejectedValueOnce(new Problem("unavailable", "Later."));
  load.mockResolvedValue({ rows: ["a"], total: 1 });
  const store = new PageStore<string>(load, () => undefined);
  store.show(0, 0);
  await vi.waitFor(() => expect(store.problem?.kind).toBe("unavailable"));
  store.reload();
  await vi.waitFor(() => expect(store.row(0)).toBe("a"));
  expect(store.problem).toBeNull();
});
