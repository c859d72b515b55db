import { defineConfig } from "vite";

/** Browsers with `light-dark()`, popovers and Trusted Types or none: 2024 and later. */
const TARGET = ["chrome123", "firefox125", "safari17.5"];
/** What `npm run dev` serves itself; everything else goes to the service. */
const OWN_PATHS = "^/(?!$|\\?|src/|@|node_modules/|index\\.html)";

export default defineConfig({
  build: {
    outDir: "../src/dtrag/delivery/page",
    emptyOutDir: true,
    target: TARGET,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    assetsInlineLimit: 0,
    // Shared parts in one chunk: many small ones compress worse.
    rolldownOptions: {
      output: {
        codeSplitting: { groups: [{ name: "parts", test: /src[\\/](parts|text|app)[\\/]/, minShareCount: 2 }] },
      },
    },
  },
  server: {
    host: "127.0.0.1",
    proxy: { [OWN_PATHS]: { target: process.env.DTRAG_SERVICE ?? "http://127.0.0.1:8001" } },
  },
});
