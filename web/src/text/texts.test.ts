import { afterEach, expect, test } from "vitest";
import { language } from "./language";
import { formatDate } from "./texts";

const zone = process.env.TZ;
afterEach(() => {
  if (zone === undefined) delete process.env.TZ;
  else process.env.TZ = zone;
});

test.each(["America/Los_Angeles", "UTC", "Asia/Seoul"])("a day is the same day in %s", (name) => {
  process.env.TZ = name;
  language.value = "en";
  expect(formatDate("2024-03-01")).toBe("Mar 1, 2024");
});

test("what is no date stays as it is written", () => {
  expect(formatDate("2024년")).toBe("2024년");
});
