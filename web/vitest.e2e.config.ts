import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import type { Reporter } from "vitest/node";

const FAILURES = join(import.meta.dirname, "node_modules/.browser-failures.txt");

/** Writes what failed to a file, which `make test` prints last: beside the other tests it would scroll away. */
const failures: Reporter = {
  onTestRunStart() {
    rmSync(FAILURES, { force: true });
  },
  onTestRunEnd(modules, unhandled) {
    const lines = unhandled.map((error) => `outside a test: ${error.stack ?? error.message}`);
    for (const module of modules) {
      for (const error of module.errors()) lines.push(`${module.relativeModuleId}: ${error.stack ?? error.message}`);
      for (const test of module.children.allTests("failed"))
        lines.push(
          `${module.relativeModuleId} > ${test.fullName}: ${test.result().errors?.at(-1)?.stack ?? "failed in a hook"}`,
        );
    }
    if (lines.length) writeFileSync(FAILURES, `Failed in the browser:\n${lines.join("\n")}\n`);
  },
};

export default defineConfig({
  test: {
    environment: "node",
    include: ["e2e/**/*.test.ts"],
    globalSetup: ["e2e/setup.ts"],
    fileParallelism: false,
    reporters: ["default", failures],
    // A real browser beside a real service on a busy machine: only what fails three times has failed.
    retry: 2,
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
