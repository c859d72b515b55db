/** A real service over the samples, in a folder of its own. */
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const ROOT = join(import.meta.dirname, "../..");
const DTRAG = process.env.DTRAG_COMMAND ?? join(ROOT, ".venv/bin/dtrag");
const run = promisify(execFile);

export interface Service {
  url: string;
  /** Runs a command on the service's data and gives its JSON. */
  dtrag: (...args: string[]) => Promise<Record<string, unknown>>;
  /** Ends the process; with `again`, a new one listens on the same port. */
  restart: () => Promise<void>;
  stop: () => Promise<void>;
  /** Ends the process and leaves the data, so that another service can begin with a copy. */
  folder: string;
}

/** `from`: the folder of a stopped service whose data is copied; else the samples are indexed. */
export async function startService(settings: Record<string, string> = {}, from?: string): Promise<Service> {
  const folder = await mkdtemp(join(tmpdir(), "dtrag-e2e-"));
  const data = join(folder, "data");
  const env = { ...process.env, PIPELINE_TIMEOUT_MULTIPLIER: "20", ...settings, DTRAG_DATA_DIR: data };
  const dtrag = async (...args: string[]) => {
    const { stdout } = await run(DTRAG, [...args, "--json"], { env, cwd: ROOT, maxBuffer: 1 << 26 });
    return JSON.parse(stdout) as Record<string, unknown>;
  };
  if (from) await cp(from, data, { recursive: true });
  else await dtrag("demo");
  let process_ = await listening(env, "0");
  const port = new URL(process_.url).port;
  return {
    url: process_.url,
    folder: data,
    dtrag,
    restart: async () => {
      await ended(process_.child);
      process_ = await listening(env, port);
    },
    stop: async () => {
      await ended(process_.child);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function listening(env: NodeJS.ProcessEnv, port: string): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(DTRAG, ["up", "--port", port, "--json"], { env, cwd: ROOT, stdio: ["ignore", "pipe", "pipe"] });
  let errors = "";
  child.stderr.on("data", (text: Buffer) => (errors += text.toString()));
  let printed = "";
  for await (const line of createInterface(child.stdout)) {
    printed += line;
    const address = /"address": "([^"]+)"/.exec(printed)?.[1];
    if (address) return { child, url: address };
  }
  throw new Error(`The service did not start: ${errors}`);
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const exit = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  await exit;
}
