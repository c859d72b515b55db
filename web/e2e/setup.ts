/** One service over the samples for all tests; without Chromium or a built page they are skipped with the reason. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { indexSamples, startService } from "./service";

declare module "vitest" {
  export interface ProvidedContext {
    /** The address of the service that all tests share: without keys, so the page is the local administrator's. */
    service: string;
    /** A data folder with the samples, for services of a test's own. */
    samples: string;
    skipped: string;
  }
}

const PAGE = join(import.meta.dirname, "../../src/dtrag/delivery/page/index.html");
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const reason = missing();
  project.provide("skipped", reason);
  project.provide("service", "");
  project.provide("samples", "");
  if (reason) {
    console.warn(`The browser tests are skipped: ${reason}`);
    return undefined;
  }
  const samples = await indexSamples();
  project.provide("samples", samples.folder);
  const service = await startService(samples.folder);
  project.provide("service", service.url);
  return async () => {
    await service.stop();
    await samples.remove();
  };
}

function missing(): string {
  if (!existsSync(CHROMIUM)) return `there is no browser at ${CHROMIUM} (set CHROMIUM, or make setup-web)`;
  if (!existsSync(PAGE)) return "the page is not built (make web)";
  return "";
}
