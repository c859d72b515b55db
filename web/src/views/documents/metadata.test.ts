import { expect, test } from "vitest";
import { language } from "../../text/language";
import { metadataName, metadataValue } from "./metadata";

test("known fields are in words, those of the files' own names stay as they are", () => {
  expect(["kind", "pages", "source_uri", "my_field"].map(metadataName)).toEqual([
    "Kind of document",
    "Pages",
    "Source",
    "my_field",
  ]);
  language.value = "ko";
  expect([metadataName("effective_from"), metadataValue("kind", "regulation")]).toEqual(["시행일", "규정"]);
  language.value = "en";
  expect([metadataValue("kind", "memo"), metadataValue("pages", 1200), metadataValue("x", [1, "a"])]).toEqual([
    "memo",
    "1,200",
    '[1,"a"]',
  ]);
  expect(metadataValue("effective_from", "2024-03-01")).toBe("Mar 1, 2024");
});
