import { describe, expect, it } from "vitest";
import { fill, mean, millis, percentile, RANGES, rangeOf, stepOf, stepsOf, successShare, sumPoints, windowOf, type Point, type Range } from "../src/lib/figures";

const BOUNDS = [1, 2, 5, 10, 20];

function point(start: number, change: Partial<Point> = {}): Point {
  const none = { count: 0, sum_ms: 0, buckets: [0, 0, 0, 0, 0, 0] };
  return { start, fires: 1, succeeded: 1, failed: 0, discarded: 0, expired: 0, cancelled: 0, open: 0, failures: 0, lateness: none, duration: none, ...change };
}

describe("windows", () => {
  const now = Date.UTC(2026, 0, 31, 9, 7, 30);
  it("hold the whole range before now, and reach beyond now", () => {
    for (const range of Object.keys(RANGES) as Range[]) {
      for (const step of stepsOf(range)) {
        for (const later of [0, 59_000, 7 * 60_000, 5 * 3_600_000]) {
          const { from, until } = windowOf(range, step, now + later);
          expect(from).toBeLessThanOrEqual(now + later - RANGES[range].ms);
          expect(until).toBeGreaterThan(now + later);
          expect(until - from).toBeLessThanOrEqual(91 * 86_400_000);
        }
      }
    }
  });
  it("stay the same for a while, so that the same question is asked again", () => {
    expect(windowOf("1h", "1m", now)).toEqual(windowOf("1h", "1m", now + 2 * 60_000));
    expect(windowOf("1h", "1m", now)).not.toEqual(windowOf("1h", "1m", now + 11 * 60_000));
  });
  it("count days from the viewer's midnight", () => {
    const midnight = Date.UTC(2026, 0, 30, 16);
    expect((windowOf("30d", "1d", now, midnight).from - midnight) % 86_400_000).toBeCloseTo(0);
  });
  it("never ask for more points than there can be", () => {
    expect(stepsOf("7d")).toEqual(["1h", "1d"]);
    expect(stepsOf("1h")).toEqual(["1m", "5m"]);
    expect(stepsOf("90d")).toEqual(["1d"]);
    expect(stepOf("1m", "90d")).toBe("1d");
    expect(stepOf("5m", "1h")).toBe("5m");
  });
  it("fall back to an hour for words that nobody knows", () => {
    expect(rangeOf("13d", ["1h", "6h"])).toBe("1h");
    expect(rangeOf("6h", ["1h", "6h"])).toBe("6h");
    expect(rangeOf("30d", ["1h", "6h"])).toBe("1h");
  });
});

describe("points", () => {
  it("are filled up to where counting has come, and cut to the range", () => {
    const from = Date.UTC(2026, 0, 31, 8);
    const answer = { from, until: from + 80 * 60_000, step_ms: 60_000, counted_until: from + 65 * 60_000, bounds_ms: BOUNDS, items: [point(from), point(from + 10 * 60_000)], total: point(from) };
    const { instants, points } = fill(answer, "1h");
    expect(instants).toHaveLength(60);
    expect(instants[0]).toBe(from + 5 * 60_000);
    expect(instants.at(-1)).toBe(from + 64 * 60_000);
    expect(points.filter((each) => each !== undefined).map((each) => each.start)).toEqual([from + 10 * 60_000]);
  });
  it("add up", () => {
    const late = (buckets: number[], sum_ms: number, max_ms: number) => ({ count: buckets.reduce((a, b) => a + b), sum_ms, max_ms, buckets });
    const total = sumPoints([
      point(0, { fires: 3, succeeded: 2, failed: 1, lateness: late([2, 0, 0, 0, 0, 0], 2, 1) }),
      undefined,
      point(1, { fires: 2, succeeded: 1, expired: 1, lateness: late([0, 0, 1, 0, 0, 1], 54, 50) }),
    ]);
    expect(total).toMatchObject({ fires: 5, succeeded: 3, failed: 1, expired: 1 });
    expect(total.lateness).toEqual({ count: 4, sum_ms: 56, max_ms: 50, buckets: [2, 0, 1, 0, 0, 1] });
    expect(mean(total.lateness)).toBe(14);
    expect(successShare(total)).toBe(0.6);
  });
});

describe("percentiles", () => {
  // What the node answered for these buckets.
  it("are those of the node", () => {
    const sum = { count: 72, sum_ms: 26, max_ms: 4, buckets: [66, 0, 6, 0, 0, 0] };
    expect(percentile(sum, BOUNDS, 0.5)).toBeCloseTo(0.5454545, 6);
    expect(percentile(sum, BOUNDS, 0.9)).toBeCloseTo(0.9848484, 6);
    expect(percentile(sum, BOUNDS, 0.99)).toBe(4);
  });
  it("reach to the largest in the bucket without an end", () => {
    expect(percentile({ count: 1, sum_ms: 90, max_ms: 90, buckets: [0, 0, 0, 0, 0, 1] }, BOUNDS, 0.5)).toBe(90);
  });
  it("are nothing of nothing", () => {
    expect(percentile({ count: 0, sum_ms: 0, max_ms: 0, buckets: [] }, BOUNDS, 0.5)).toBeNull();
    expect(successShare({ succeeded: 0, failed: 0, discarded: 0, expired: 0 })).toBeNull();
  });
});

describe("times", () => {
  it("show tenths below ten milliseconds", () => {
    expect(millis(0.5454)).toBe("0.5 ms");
    expect(millis(4)).toBe("4 ms");
    expect(millis(1_250)).toBe("1.25 s");
  });
});
