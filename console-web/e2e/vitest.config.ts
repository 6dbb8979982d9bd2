import { defineConfig } from "vitest/config";

// Browser tests: real nodes, real executors, Debian's Chromium. `npm run e2e [-- names]`.
export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ["**/*.spec.ts"],
    environment: "node",
    pool: "forks",
    maxWorkers: 2,
    // Bounds for a test that hangs, not measures.
    testTimeout: 300_000,
    hookTimeout: 120_000,
    reporters: ["verbose"],
  },
});
