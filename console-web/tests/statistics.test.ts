import { describe, expect, it } from "vitest";
import { barsOf } from "../src/lib/buckets";
import { csvOf } from "../src/lib/csv";
import { byApp } from "../src/lib/load";

describe("the download", () => {
  const times = { count: 2, sum_ms: 3, mean_ms: 1.5, p50_ms: 1, p90_ms: 2, p99_ms: 2, max_ms: 2, buckets: [1, 1, 0] };
  const none = { count: 0, sum_ms: 0, mean_ms: null, buckets: [] };
  const point = { start: Date.UTC(2026, 0, 31), fires: 3, succeeded: 2, failed: 1, discarded: 0, expired: 0, cancelled: 0, open: 0, failures: 4, lateness: times, duration: none };
  const [head = "", line = "", end] = csvOf([point], [1, 5]).split("\r\n");
  it("has a name for each value", () => {
    expect(head.split(",")).toHaveLength(line.split(",").length);
    expect(end).toBe("");
    expect(new Set(head.split(",")).size).toBe(head.split(",").length);
  });
  it("puts values below their names, and nothing for what is not known", () => {
    const values = Object.fromEntries(head.split(",").map((name, index) => [name, line.split(",")[index]]));
    expect(values).toMatchObject({ start: "2026-01-31T00:00:00.000Z", fires: "3", failed: "1", failures: "4", lateness_p99_ms: "2", lateness_up_to_5_ms: "1", lateness_above: "0", duration_mean_ms: "", duration_count: "0", duration_above: "0" });
  });
});

describe("bars", () => {
  it("leave the empty ends out, and the last has no end", () => {
    expect(barsOf([0, 3, 0, 1], [1, 2, 5])).toEqual([
      { upTo: 2, above: 1, count: 3, share: 0.75 },
      { upTo: 5, above: 2, count: 0, share: 0 },
      { upTo: undefined, above: 5, count: 1, share: 0.25 },
    ]);
    expect(barsOf([0, 0], [1])).toEqual([]);
    expect(barsOf([2], [1])).toEqual([{ upTo: 1, above: 0, count: 2, share: 1 }]);
  });
});

describe("load", () => {
  it("is summed by app, the busiest first", () => {
    const executor = (app_id: string, running: number) => ({ app_id, tenant: "demo", app: `app ${app_id}`, running, held: 1, capacity: 8, plain: false });
    expect(byApp([executor("1", 0), executor("2", 3), executor("1", 2), executor("2", 1)])).toEqual([
      { key: "2", tenant: "demo", app: "app 2", online: 2, running: 4, held: 2, capacity: 16 },
      { key: "1", tenant: "demo", app: "app 1", online: 2, running: 2, held: 2, capacity: 16 },
    ]);
  });
  it("has no capacity where an executor does not tell its own", () => {
    const executor = (capacity: number, plain: boolean) => ({ app_id: "1", tenant: "demo", app: "shop", running: 1, held: 0, capacity, plain });
    const known = { key: "1", tenant: "demo", app: "shop", held: 0 };
    expect(byApp([executor(8, false), executor(2_147_483_647, true), executor(8, false)])).toEqual([{ ...known, online: 3, running: 3, capacity: undefined }]);
  });
});
