/** Writes beside the built page what it was built from: `hatch_build.py` compares it before it builds a wheel. `--print`: only says it. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const WEB = join(import.meta.dirname, "..");
const PAGE = join(WEB, "../src/dtrag/delivery/page");
const FILES = ["index.html", "package-lock.json", "tsconfig.json", "vite.config.ts", "vite.widget.config.ts"];
const UNUSED = /\.test\.tsx?$|^src\/test\/|^src\/api\/schema\.ts$/;

const sha256 = (content) => createHash("sha256").update(content).digest("hex");
const sources = readdirSync(join(WEB, "src"), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name).slice(WEB.length + 1))
  .filter((path) => !UNUSED.test(path));
const lines = [...FILES, ...sources].sort().map((path) => `${path} ${sha256(readFileSync(join(WEB, path)))}\n`);
const digest = sha256(lines.join(""));
if (process.argv.includes("--print")) console.log(digest);
else writeFileSync(join(PAGE, "sources.sha256"), `${digest}\n`);
