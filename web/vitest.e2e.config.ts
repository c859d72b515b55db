import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    environment: "node",
    include: ["e2e/**/*.test.ts"],
    globalSetup: ["e2e/setup.ts"],
    fileParallelism: false,
    // A real browser beside a real service on a busy machine: only what fails three times has failed.
    retry: 2,
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
