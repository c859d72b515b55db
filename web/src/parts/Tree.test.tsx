import { act } from "preact/test-utils";
import { useState } from "preact/hooks";
import { expect, test } from "vitest";
import { mount } from "../test/setup";
import type { Branch, Selection } from "./branches";
import { Tree } from "./Tree";

const leaf = (path: string[], documents: number): Branch => ({
  path,
  name: path.at(-1) ?? "",
  documents,
  children: [],
});
const tree: Branch[] = [
  { path: ["Law"], name: "Law", documents: 1, children: [leaf(["Law", "Civil"], 2), leaf(["Law", "Tax"], 3)] },
  leaf(["Zoo"], 4),
];

function Picker() {
  const [selection, setSelection] = useState<Selection>([]);
  return <Tree tree={tree} label="Categories" selection={selection} onSelect={setSelection} />;
}

function items(page: HTMLElement) {
  return [...page.querySelectorAll<HTMLElement>("[role=treeitem]")];
}

async function press(page: HTMLElement, key: string) {
  await act(() => {
    const active = page.querySelector<HTMLElement>("[tabindex='0'][role=treeitem]");
    active?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  });
}

test("a branch counts everything below it, and only one row can be reached with Tab", () => {
  const page = mount(<Picker />);
  expect(items(page).map((item) => item.textContent)).toEqual([
    "Law6 documents",
    "Civil2 documents",
    "Tax3 documents",
    "Zoo4 documents",
  ]);
  expect(items(page).map((item) => item.tabIndex)).toEqual([0, -1, -1, -1]);
  expect(items(page).map((item) => item.getAttribute("aria-level"))).toEqual(["1", "2", "2", "1"]);
});

test("arrows move, open and close; the space bar ticks; letters search", async () => {
  const page = mount(<Picker />);
  await press(page, "ArrowDown");
  await press(page, " ");
  expect(items(page).map((item) => item.getAttribute("aria-checked"))).toEqual(["mixed", "true", "false", "false"]);
  await press(page, "ArrowLeft");
  await press(page, "ArrowLeft");
  expect(items(page).map((item) => item.textContent)).toEqual(["Law6 documents", "Zoo4 documents"]);
  await press(page, "z");
  await press(page, "Enter");
  expect(items(page).map((item) => item.getAttribute("aria-checked"))).toEqual(["mixed", "true"]);
  await press(page, "Home");
  await press(page, "ArrowRight");
  expect(items(page)).toHaveLength(4);
});
