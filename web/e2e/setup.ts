/** One service over the samples for all tests; without Chromium or a built page they are skipped with the reason. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { startService } from "./service";

declare module "vitest" {
  export interface ProvidedContext {
    service: string;
    skipped: string;
  }
}

const PAGE = join(import.meta.dirname, "../../src/dtrag/delivery/page/index.html");
export const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const reason = missing();
  project.provide("skipped", reason);
  project.provide("service", "");
  if (reason) {
    console.warn(`The browser tests are skipped: ${reason}`);
    return undefined;
  }
  const service = await startService();
  project.provide("service", service.url);
  return service.stop;
}

function missing(): string {
  if (!existsSync(CHROMIUM)) return `there is no browser at ${CHROMIUM} (set CHROMIUM, or make setup-web)`;
  if (!existsSync(PAGE)) return "the page is not built (make web)";
  return "";
}
