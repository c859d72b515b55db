import { defineConfig } from "vite";
import page from "./vite.config";

/** The widget for other sites: one script beside the page, without modules. Built after the page, which empties the folder. */
export default defineConfig({
  build: {
    ...page.build,
    emptyOutDir: false,
    copyPublicDir: false,
    rolldownOptions: { output: { codeSplitting: false } },
    lib: { entry: "src/widget/main.ts", formats: ["iife"], name: "dtragWidget", fileName: () => "widget.js" },
  },
});
