import { readdirSync } from "node:fs";
import { join, relative } from "node:path";
import { defineConfig } from "vite";

/** Browsers with `light-dark()`, popovers and Trusted Types or none: 2024 and later. */
const TARGET = ["chrome123", "firefox125", "safari17.5"];
/** What `npm run dev` serves itself; everything else goes to the service. */
const OWN_PATHS = "^/(?!$|\\?|src/|@|node_modules/|index\\.html)";

const SOURCE = join(import.meta.dirname, "src");
const STYLES = readdirSync(SOURCE, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".module.css"))
  .sort();
const numbers = new Map<string, Map<string, number>>();

/** Classes are named in the styles and in the code: short, by the numbers of their file and of the class in it. */
function scoped(name: string, file: string): string {
  const path = relative(SOURCE, file.replace(/\?.*$/, ""));
  const classes = numbers.get(path) ?? new Map<string, number>();
  numbers.set(path, classes);
  const number = classes.get(name) ?? classes.size;
  classes.set(name, number);
  return `_${STYLES.indexOf(path).toString(36).padStart(2, "0")}${number.toString(36)}`;
}

export default defineConfig({
  css: { modules: { generateScopedName: scoped } },
  build: {
    outDir: "../src/dtrag/delivery/page",
    emptyOutDir: true,
    target: TARGET,
    // A thirtieth smaller than by the minifier of Vite.
    minify: "terser",
    terserOptions: { module: true, compress: { passes: 3, ecma: 2020 } },
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    assetsInlineLimit: 0,
    // Shared parts in one chunk, and the views of those who look after documents in one: many small ones compress worse.
    rolldownOptions: {
      output: {
        codeSplitting: {
          includeDependenciesRecursively: false,
          groups: [
            {
              name: "manage",
              test: /src[\\/](parts[\\/](moving|jobs)|views[\\/](agents|audit|cases|evaluation|keys|review|search|settings|taxonomy|trace))[\\/]/,
            },
            { name: "parts", test: /node_modules|src[\\/](parts|text|state|app|api)[\\/]/, minShareCount: 2 },
          ],
        },
      },
    },
  },
  server: {
    host: "127.0.0.1",
    proxy: { [OWN_PATHS]: { target: process.env.DTRAG_SERVICE ?? "http://127.0.0.1:8001" } },
  },
});
