import { expect, it } from "vitest";
import type { Schema } from "../src/api/client";
import { barsOf, LEAST_HEIGHT, successRate } from "../src/lib/strip";

function log(id: string, status: string, started_at: number | null, finished_at: number | null): Schema<"TaskLog"> {
  return { id, status, started_at, finished_at, due_time: 1_000 } as Schema<"TaskLog">;
}

it("shows the oldest first, short runs beside long ones, and what has not ended", () => {
  const bars = barsOf([log("3", "dispatched", 3_000, null), log("2", "failed", 1_010, 61_010), log("1", "succeeded", 1_002, 1_007)]);
  expect(bars.map((bar) => bar.log.id)).toEqual(["1", "2", "3"]);
  expect(bars.map((bar) => bar.tone)).toEqual(["good", "bad", "open"]);
  expect(bars.map((bar) => bar.duration)).toEqual([5, 60_000, undefined]);
  expect(bars.map((bar) => bar.lateness)).toEqual([2, 10, 2_000]);
  expect(bars[1]?.height).toBeCloseTo(1);
  expect(bars[0]?.height).toBeGreaterThan(LEAST_HEIGHT);
  expect(bars[2]?.height).toBe(LEAST_HEIGHT);
});

it("counts what has ended, and not what was cancelled", () => {
  expect(successRate([])).toBeNull();
  expect(successRate([{ status: "init" }, { status: "cancelled" }])).toBeNull();
  expect(successRate([{ status: "succeeded" }, { status: "failed" }, { status: "dispatched" }])).toBe(0.5);
});
