import { describe, expect, it } from "vitest";
import { frozen, goOn, join, limitsOf, orderOf, rangeOf, showsShards, type Rows } from "../src/lib/logList";
import type { Log } from "../src/lib/taskLog";

const NOW = 1_000_000_000;

function row(id: number, version = 1): Log {
  return {
    id: String(id), task: "1", app: "3", written_at: 0, tenant: "demo", revision: 1, status: "init", reason: "", trigger: "schedule", priority: 5, fire_time: id, due_time: id + 5,
    attempt: 0, failures: 0, shard_index: 0, shard_total: 1, message: "", output: "", version,
  };
}
const ids = (items: readonly Log[]) => items.map((log) => Number(log.id));

describe("ranges", () => {
  it("end now, unless one looks for what waits", () => {
    expect(rangeOf({})).toBe("past");
    expect(rangeOf({ status: "failed" })).toBe("past");
    expect(rangeOf({ status: "retry" })).toBe("all");
    expect(rangeOf({ status: "retry", range: "1h" })).toBe("1h");
    expect(rangeOf({ range: "nonsense" })).toBe("past");
    expect(rangeOf({ range: "1h", from: "5" })).toBeUndefined();
  });

  it("are instants", () => {
    expect(limitsOf({}, NOW)).toEqual({ from: undefined, until: NOW + 1 });
    expect(limitsOf({ range: "15m" }, NOW)).toEqual({ from: NOW - 900_000, until: NOW + 1 });
    expect(limitsOf({ range: "upcoming" }, NOW)).toEqual({ from: NOW });
    expect(limitsOf({ range: "all" }, NOW)).toEqual({});
    expect(limitsOf({ from: "12", until: "x" }, NOW)).toEqual({ from: 12, until: undefined });
  });

  it("show what comes next first", () => {
    expect(orderOf({ range: "upcoming" })).toBe("oldest");
    expect(orderOf({ range: "upcoming", order: "newest" })).toBe("newest");
    expect(orderOf({})).toBe("newest");
  });

  it("stand still in a link that is given away", () => {
    expect(frozen({ range: "1h", status: "failed" }, NOW)).toEqual({ status: "failed", order: "newest", from: String(NOW - 3_600_000), until: String(NOW + 1) });
    expect(frozen({ range: "all" }, NOW)).toMatchObject({ range: "all" });
  });
});

describe("a list that is too long", () => {
  it("goes on where it ended", () => {
    expect(goOn({ range: "all" }, row(50))).toMatchObject({ until: "51", from: undefined, order: "newest" });
    expect(goOn({ from: "3", until: "90" }, row(50))).toMatchObject({ from: "3", until: "51" });
    expect(goOn({ from: "3", until: "90", order: "oldest" }, row(50))).toMatchObject({ from: "50", until: "90", order: "oldest" });
    expect(goOn({ status: "failed" }, row(50))).toMatchObject({ until: "56" });
    expect(limitsOf(goOn({}, row(50)), NOW)).toEqual({ from: undefined, until: 51 });
  });
});

describe("shards", () => {
  it("are rows of their own where one looks for what only they have", () => {
    expect(showsShards({})).toBe(false);
    expect(showsShards({ status: "failed" })).toBe(false);
    expect(showsShards({ executor: "5" })).toBe(true);
    expect(showsShards({ reason: "timed_out" })).toBe(true);
    expect(showsShards({ shards: "1" })).toBe(true);
  });
});

describe("what is new", () => {
  const page = (...numbers: (number | Log)[]): Rows => ({ items: numbers.map((each) => (typeof each === "number" ? row(each) : each)), isAll: false });
  const all = (...numbers: (number | Log)[]): Rows => ({ ...page(...numbers), isAll: true });
  const atTop = (read: Rows, now: Rows) => join(read, now, now);
  const below = (read: Rows, now: Rows) => join(read, undefined, now);
  const read = page(3, 2, 1);

  it("comes first, and what is known is shown as it is now", () => {
    const joined = atTop(read, page(5, 4, row(3, 2)));
    expect(ids(joined.items)).toEqual([5, 4, 3, 2, 1]);
    expect(joined.items[2]?.version).toBe(2);
    expect(joined).toMatchObject({ newer: 0, isApart: false });
  });

  it("takes away what does not belong to the list any more", () => {
    expect(ids(atTop(read, page(4, 2)).items)).toEqual([4, 2, 1]);
    expect(ids(atTop(read, all(4)).items)).toEqual([4]);
    expect(ids(atTop(read, all()).items)).toEqual([]);
    // So much that the beginning reaches beyond all that was read.
    expect(atTop(page(9, 8, 7), page(9, 7, 6))).toMatchObject({ isApart: false });
    expect(ids(atTop(page(9, 8, 7), page(9, 7, 6)).items)).toEqual([9, 7, 6]);
    expect(ids(atTop(page(9, 8, 7, 6, 5, 4), page(9, 7, 6)).items)).toEqual([9, 7, 6, 5, 4]);
  });

  it("is only counted while the user reads further down", () => {
    const joined = below(read, page(5, 4, row(3, 2)));
    expect(ids(joined.items)).toEqual([3, 2, 1]);
    expect(joined.items[0]?.version).toBe(2);
    expect(joined).toMatchObject({ newer: 2, isApart: false });
    expect(ids(below(read, all(4)).items)).toEqual([3, 2, 1]);
  });

  it("is not what the user has seen at the top", () => {
    const seen = page(4, 3, 2);
    expect(join(read, seen, seen)).toMatchObject({ newer: 0, isApart: false });
    const joined = join(read, seen, page(5, row(4, 2), 3));
    expect(ids(joined.items)).toEqual([4, 3, 2, 1]);
    expect(joined.items[0]?.version).toBe(2);
    expect(joined).toMatchObject({ newer: 1, isApart: false });
    expect(join(read, seen, page(9, 8, 7))).toMatchObject({ newer: 3, isApart: true });
  });

  it("is apart when a page does not reach what was read", () => {
    const joined = atTop(read, page(9, 8));
    expect(joined).toMatchObject({ newer: 2, isApart: true });
    expect(ids(joined.items)).toEqual([3, 2, 1]);
    expect(below(read, page(9, 8))).toMatchObject({ newer: 2, isApart: true });
  });

  it("is apart, too, when only a row that stays on top is in both", () => {
    // 99 is to come, tomorrow say.
    expect(atTop(page(99, 3, 2, 1), page(99, 9, 8, 7))).toMatchObject({ newer: 3, isApart: true });
    // All there was, and then more than a page holds.
    expect(atTop(all(99), page(99, 9, 8, 7))).toMatchObject({ isApart: true });
    expect(atTop(all(99, 9), page(99, 9))).toMatchObject({ isApart: false });
  });

  it("never makes a row older than it was", () => {
    expect(below(page(row(3, 7)), page(row(3, 6))).items[0]?.version).toBe(7);
  });

  it("fills a list that was empty", () => {
    expect(ids(atTop(all(), all(2, 1)).items)).toEqual([2, 1]);
    expect(ids(atTop(all(), page(2, 1)).items)).toEqual([2, 1]);
    // There is more than this, and nothing was read that would go on.
    expect(atTop(all(), page(2, 1)).isApart).toBe(true);
    expect(join(all(), undefined, undefined)).toEqual({ items: [], newer: 0, isApart: false });
  });

  it("may be nothing within the time that the node looks for it", () => {
    expect(atTop(read, page())).toMatchObject({ newer: 0, isApart: false });
    expect(ids(atTop(read, page()).items)).toEqual([3, 2, 1]);
  });
});
