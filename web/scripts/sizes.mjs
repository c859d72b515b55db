/** The built files with their compressed sizes: what the first view loads, and everything. `--limits` fails beyond them. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const PAGE = join(import.meta.dirname, "../../src/dtrag/delivery/page");
const FIRST_VIEW_LIMIT = 60_000;
const ALL_LIMIT = 170_000;
const WIDGET_LIMIT = 12_000;
const FIRST_VIEW = ["index", "AskView"];
const IMPORTED = /from"\.\/([\w-]+\.js)"/g;

const size = (path) => gzipSync(readFileSync(path), { level: 9 }).length;
const assets = readdirSync(join(PAGE, "assets")).map((name) => ({ name, bytes: size(join(PAGE, "assets", name)) }));
const index = size(join(PAGE, "index.html"));
const sum = (files) => files.reduce((total, file) => total + file.bytes, index);
/** "AskView" of "AskView-Dt0BUXFI.js". */
const chunkOf = (name) => name.replace(/-[\w-]{8}\.\w+$/, "");

/** The chunks of the first view with all that they import at once; the styles of a chunk have its name. */
function firstChunks() {
  const chunks = new Set(FIRST_VIEW);
  for (const chunk of chunks)
    for (const { name } of assets.filter((file) => chunkOf(file.name) === chunk && file.name.endsWith(".js")))
      for (const match of readFileSync(join(PAGE, "assets", name), "utf8").matchAll(IMPORTED))
        chunks.add(chunkOf(match[1]));
  return chunks;
}

const chunks = firstChunks();
const first = sum(assets.filter((file) => chunks.has(chunkOf(file.name))));
const all = sum(assets);
const widget = size(join(PAGE, "widget.js"));

for (const file of assets.sort((a, b) => b.bytes - a.bytes)) console.log(String(file.bytes).padStart(8), file.name);
console.log(`widget for other sites: ${widget} of ${WIDGET_LIMIT} bytes`);
console.log(`first view (shell and Ask): ${first} of ${FIRST_VIEW_LIMIT} bytes; everything: ${all} of ${ALL_LIMIT}`);
if (process.argv.includes("--limits") && (first > FIRST_VIEW_LIMIT || all > ALL_LIMIT || widget > WIDGET_LIMIT))
  process.exit(1);
