/** Real services over the samples, each with data of its own. */
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const ROOT = join(import.meta.dirname, "../..");
const DTRAG = process.env.DTRAG_COMMAND ?? join(ROOT, ".venv/bin/dtrag");
const run = promisify(execFile);

export interface Service {
  url: string;
  /** Runs a command on the service's data and gives its JSON: `dtrag("keys", "create", "--name", "kim")`. */
  dtrag: (...args: string[]) => Promise<Record<string, unknown>>;
  /** End the process, or begin a new one on the same port. */
  end: () => Promise<void>;
  begin: () => Promise<void>;
  /** End the process and delete the data. */
  stop: () => Promise<void>;
}

/** A data folder with the samples indexed. */
export async function indexSamples(): Promise<{ folder: string; remove: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), "dtrag-samples-"));
  await run(DTRAG, ["demo", "--json"], { env: environment(folder, {}), cwd: ROOT, maxBuffer: 1 << 26 });
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** `dtrag verify` of a signed file; rejects with what the command says about another one. */
export const verified = (file: string, key: string) => run(DTRAG, ["verify", file, "--key", key], { cwd: ROOT });

/** A service over a copy of `samples`. `settings` are variables of the environment. */
export async function startService(samples: string, settings: Record<string, string> = {}): Promise<Service> {
  const folder = await mkdtemp(join(tmpdir(), "dtrag-e2e-"));
  await run("cp", ["-a", `${samples}/.`, folder]); // with its owner: PostgreSQL does not run as root
  const env = environment(folder, settings);
  let running = await listening(env, "0");
  const { url } = running;
  const end = () => ended(running.child);
  return {
    url,
    dtrag: async (...args) => {
      const { stdout } = await run(DTRAG, [...args, "--json"], { env, cwd: ROOT, maxBuffer: 1 << 26 });
      return JSON.parse(stdout) as Record<string, unknown>;
    },
    end,
    begin: async () => {
      running = await listening(env, new URL(url).port);
    },
    stop: async () => {
      await end();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function environment(folder: string, settings: Record<string, string>): NodeJS.ProcessEnv {
  const always = { PIPELINE_TIMEOUT_MULTIPLIER: "20", DTRAG_KEEP_ORIGINALS: "on" };
  return { ...process.env, ...always, ...settings, DTRAG_DATA_DIR: folder };
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
