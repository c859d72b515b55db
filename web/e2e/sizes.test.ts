import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { skipped } from "./browser";

test.skipIf(skipped !== "")(
  "the built page is small enough: 60 kB for the first view, 170 kB for everything, 12 kB for the widget",
  () => {
    const sizes = execFileSync("node", [join(import.meta.dirname, "../scripts/sizes.mjs"), "--limits"], {
      encoding: "utf8",
    });
    expect(sizes).toContain("first view");
  },
);
