import { expect, test } from "vitest";
import { chosen } from "./files";

const fileAt = (path: string): File => {
  const file = new File(["text"], path.split("/").at(-1) ?? "");
  Object.defineProperty(file, "webkitRelativePath", { value: path.includes("/") ? path : "" });
  return file;
};

test("of a folder, kinds that are not read are named, and hidden files are left out", () => {
  const found = chosen(
    ["a/Rules.PDF", "a/b/photo.webp", "a/b/icon.webp", "a/README", "a/.git/x.md", "a/old.hwp"].map(fileAt),
  );
  expect(found.files.map((file) => file.path)).toEqual(["a/Rules.PDF", "a/old.hwp"]);
  expect([...found.skipped]).toEqual([
    [".webp", ["a/b/photo.webp", "a/b/icon.webp"]],
    ["", ["a/README"]],
  ]);
});

test("a file that was chosen itself is always tried", () => {
  expect(chosen([fileAt("photo.webp")]).files).toHaveLength(1);
});
