import { describe, expect, it } from "vitest";
import { comingOf, DENSE, marksOf, nearest, stillToCome } from "../src/lib/coming";

const log = (id: string, task: string, due_time: number, change = {}) => ({ id, task, tenant: "demo", status: "init", fire_time: due_time, due_time, node: null, parent: null, ...change });

describe("what comes", () => {
  const coming = comingOf(
    [log("1", "b", 5_000), log("2", "a", 5_400), log("3", "b", 1_000), log("4", "b", 9_000, { parent: "x" })],
    0,
    true,
    (task) => `task ${task}`,
  );
  it("is a lane for each task, in an order that stays", () => {
    expect(coming.lanes.map(({ name, fires, next }) => [name, fires, next.map(({ log: id }) => id)])).toEqual([
      ["task a", 1, ["2"]],
      ["task b", 2, ["3", "1"]],
    ]);
  });
  it("keeps what is overdue, and forgets what has ended", () => {
    const late = comingOf([log("1", "a", 500), log("2", "a", 600, { status: "succeeded" }), log("3", "a", 2_000), log("4", "c", 700, { status: "cancelled" })], 1_000, true, (task) => task);
    expect(late.lanes.map(({ task, fires, next }) => [task, fires, next.map(({ log: id }) => id)])).toEqual([["a", 1, ["1", "3"]]]);
  });
  it("counts each second, without shards", () => {
    expect(coming.seconds).toEqual([{ second: 1_000, fires: 1 }, { second: 5_000, fires: 2 }]);
  });
  it("passes", () => {
    expect(stillToCome(coming, 0)).toEqual({ fires: 3, busiest: { second: 5_000, fires: 2 } });
    expect(stillToCome(coming, 2_000).fires).toBe(2);
    expect(stillToCome(coming, 6_000)).toEqual({ fires: 0, busiest: undefined });
  });
  it("shows fires, and of many the seconds", () => {
    const fires = (count: number) => ({ next: Array.from({ length: count }, (_, index) => ({ log: `${index}`, fire_time: 0, due_time: index * 500, status: "init" })) });
    expect(marksOf(fires(DENSE))).toHaveLength(DENSE);
    const dense = marksOf(fires(DENSE + 2));
    expect(dense).toHaveLength((DENSE + 2) / 2);
    expect(dense[1]).toEqual({ at: 1_000, status: "init", fires: 2 });
  });
  it("finds the fire at the pointer", () => {
    const fires = [{ due_time: 1_000 }, { due_time: 4_000 }];
    expect(nearest(fires, 0)).toBe(0);
    expect(nearest(fires, 2_600)).toBe(1);
    expect(nearest([], 0)).toBe(-1);
  });
});
