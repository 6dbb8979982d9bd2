import { expect, it } from "vitest";
import { amountOf, msOf } from "../src/lib/duration";

it("shows a span in the largest unit that holds it whole", () => {
  expect(amountOf(1)).toEqual({ count: 1, unit: "ms" });
  expect(amountOf(1_500)).toEqual({ count: 1_500, unit: "ms" });
  expect(amountOf(90_000)).toEqual({ count: 90, unit: "s" });
  expect(amountOf(600_000)).toEqual({ count: 10, unit: "min" });
  expect(amountOf(90 * 60_000)).toEqual({ count: 90, unit: "min" });
  expect(amountOf(172_800_000)).toEqual({ count: 2, unit: "d" });
  expect(amountOf(0, "h")).toEqual({ count: 0, unit: "h" });
});

it("comes back as it was", () => {
  for (const ms of [0, 1, 999, 1_000, 61_000, 3_600_000, 86_400_000, 2_592_000_000]) expect(msOf(amountOf(ms))).toBe(ms);
});

it("takes fractions", () => {
  expect(msOf({ count: 1.5, unit: "s" })).toBe(1_500);
  expect(msOf({ count: 0.1, unit: "ms" })).toBe(0);
});
