import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

/** The node that `npm run dev` asks. */
const node = process.env.CARILLON_URL ?? "http://127.0.0.1:8526";

export default defineConfig({
  plugins: [react()],
  server: { proxy: { "/api": { target: node } } },
  build: {
    target: "es2022",
    // Every name carries a hash of what it holds: the node lets browsers keep them for ever.
    assetsDir: "assets",
    // A data: address would need a wider Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1_500,
  },
  test: {
    environment: "happy-dom",
    include: ["tests/**/*.test.{ts,tsx}"],
    setupFiles: ["tests/setup.ts"],
    // One environment for all files: a new one for each costs seven times as much as the tests. Each test cleans up after
    // itself.
    isolate: false,
    // For a machine that compiles beside them.
    testTimeout: 60_000,
  },
});
