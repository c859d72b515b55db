import { beforeAll, beforeEach, expect, test, vi } from "vitest";
import { shortcuts, startShortcuts } from "./shortcuts";

const run = vi.fn();
beforeAll(startShortcuts);
beforeEach(() => {
  run.mockClear();
  shortcuts.value = ["f", "g a", "/"].map((keys) => ({ keys, label: () => keys, run: () => run(keys) as void }));
});

const press = (key: string, code: string) =>
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key, code, bubbles: true, cancelable: true }));

test("letters match where the keyboard types Hangul", () => {
  press("ㄹ", "KeyF");
  press("ㅎ", "KeyG");
  press("ㅁ", "KeyA");
  expect(run.mock.calls).toEqual([["f"], ["g a"]]);
});

test("another Latin layout is taken by what it types", () => {
  press("f", "KeyE");
  press("e", "KeyF");
  press("/", "Digit7");
  expect(run.mock.calls).toEqual([["f"], ["/"]]);
});
