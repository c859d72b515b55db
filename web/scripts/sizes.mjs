/** The built files with their compressed sizes: what the first view loads, and everything. `--limits` fails beyond them. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const PAGE = join(import.meta.dirname, "../../src/dtrag/delivery/page");
const FIRST_VIEW_LIMIT = 60_000;
const ALL_LIMIT = 150_000;
const FIRST_VIEW = /^(index|AskView)-/;

const size = (path) => gzipSync(readFileSync(path), { level: 9 }).length;
const assets = readdirSync(join(PAGE, "assets")).map((name) => ({ name, bytes: size(join(PAGE, "assets", name)) }));
const index = size(join(PAGE, "index.html"));
const sum = (files) => files.reduce((total, file) => total + file.bytes, index);
const first = sum(assets.filter((file) => FIRST_VIEW.test(file.name)));
const all = sum(assets);

for (const file of assets.sort((a, b) => b.bytes - a.bytes)) console.log(String(file.bytes).padStart(8), file.name);
console.log(`first view (shell and Ask): ${first} of ${FIRST_VIEW_LIMIT} bytes; everything: ${all} of ${ALL_LIMIT}`);
if (process.argv.includes("--limits") && (first > FIRST_VIEW_LIMIT || all > ALL_LIMIT)) process.exit(1);
