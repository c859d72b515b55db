import { expect, test } from "vitest";
import { checkOf, rowsOf, toggled, pathKey, type Branch, type Selection } from "./branches";

function branch(path: string[], ...children: Branch[]): Branch {
  return { path, name: path.at(-1) ?? "", children };
}
const tree = [
  branch(["A"], branch(["A", "x"], branch(["A", "x", "1"]), branch(["A", "x", "2"])), branch(["A", "y"])),
  branch(["B"]),
];
const names = (selection: Selection) => selection.map((path) => path.join("/")).sort();

test("a branch stands for everything below it", () => {
  const chosen = toggled(tree, ["A", "x"], []);
  expect(names(chosen)).toEqual(["A/x"]);
  expect(checkOf(["A", "x", "1"], chosen)).toBe("on");
  expect(checkOf(["A"], chosen)).toBe("mixed");
  expect(checkOf(["B"], chosen)).toBe("off");
});

test("switching off a part leaves the rest", () => {
  expect(names(toggled(tree, ["A", "x", "1"], [["A"]]))).toEqual(["A/x/2", "A/y"]);
});

test("all parts together are the whole", () => {
  expect(
    names(
      toggled(
        tree,
        ["A", "x", "1"],
        [
          ["A", "x", "2"],
          ["A", "y"],
        ],
      ),
    ),
  ).toEqual(["A"]);
});

test("a search shows matches with what is above them", () => {
  const rows = rowsOf(tree, new Set(), "2");
  expect(rows.map((row) => [pathKey(row.branch.path), row.level])).toEqual([
    ["A", 1],
    ["A/x", 2],
    ["A/x/2", 3],
  ]);
});
