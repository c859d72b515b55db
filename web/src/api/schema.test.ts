// @vitest-environment node
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import openapiTS, { astToString } from "openapi-typescript";
import { expect, test } from "vitest";

test("schema.ts is what openapi.json gives; otherwise: npm run api", async () => {
  const described = JSON.parse(await readFile(join(import.meta.dirname, "../../openapi.json"), "utf8")) as object;
  const types = astToString(await openapiTS(described as Parameters<typeof openapiTS>[0], { alphabetize: true }));
  const stored = await readFile(join(import.meta.dirname, "schema.ts"), "utf8");
  expect(stored.endsWith(types)).toBe(true);
});
