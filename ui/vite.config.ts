// How the pages are built: one page, one script, one stylesheet, nothing from elsewhere.
import { defineConfig } from "vitest/config";

// Where the API is while the pages are worked on: a running hob's admin listener, or the stand-in.
const api = process.env["HOB_ADMIN"] ?? "http://127.0.0.1:8089";

export default defineConfig({
  server: {
    proxy: {
      // The server answers to its own name and origin only.
      "/v1": { target: api, changeOrigin: true, headers: { Origin: api } },
    },
  },
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    // A data: URL would need a looser Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // Named by content, so that browsers may keep them for ever.
    assetsDir: "assets",
    reportCompressedSize: false,
  },
  test: { testTimeout: 30_000, hookTimeout: 60_000 },
});
