import { describe, expect, it } from "vitest";
import { DENSE, inOrder, marksOf, nearest, stepFrom, stillToCome, type Upcoming, type Lane } from "../src/lib/upcoming";

const lane = (name: string, tenant: string, ...dues: number[]): Lane => ({
  task: `${tenant} ${name}`,
  name,
  tenant,
  fires: dues.length,
  next: dues.map((due_time) => ({ log: String(due_time), fire_time: due_time, due_time, status: "init" })),
});

describe("what comes", () => {
  const upcoming: Upcoming = {
    at: 0,
    lanes: [lane("a", "demo", 5_400), lane("b", "demo", 1_000, 5_000)],
    seconds: [{ second: 1_000, fires: 1 }, { second: 5_000, fires: 2 }],
    moreTasks: 0,
    isComplete: true,
  };
  it("stays in its order, whatever fires next", () => {
    const lanes = [lane("b", "retail", 1), lane("a", "retail", 9), lane("z", "demo", 5)];
    expect(inOrder(lanes).map(({ tenant, name }) => `${tenant} ${name}`)).toEqual(["demo z", "retail a", "retail b"]);
  });
  it("passes", () => {
    expect(stillToCome(upcoming, 0)).toEqual({ fires: 3, busiest: { second: 5_000, fires: 2 } });
    expect(stillToCome(upcoming, 2_000).fires).toBe(2);
    expect(stillToCome(upcoming, 6_000)).toEqual({ fires: 0, busiest: undefined });
  });
  it("shows fires, and of many the seconds", () => {
    const fires = (count: number) => ({ next: Array.from({ length: count }, (_, index) => ({ log: `${index}`, fire_time: 0, due_time: index * 500, status: "init" })) });
    expect(marksOf(fires(DENSE))).toHaveLength(DENSE);
    const dense = marksOf(fires(DENSE + 2));
    expect(dense).toHaveLength((DENSE + 2) / 2);
    expect(dense[1]).toEqual({ at: 1_000, status: "init", fires: 2 });
  });
  it("goes from fire to fire, also when what was looked at has gone", () => {
    const { next: all } = lane("a", "demo", 1_000, 2_000, 3_000, 4_000);
    const dueAfter = (at: number, by: 1 | -1, fires = all) => stepFrom(fires, all[at], by)?.due_time;
    expect([dueAfter(1, 1), dueAfter(1, -1), dueAfter(3, 1), dueAfter(0, -1)]).toEqual([3_000, 1_000, 4_000, 1_000]);
    // The first two have fired meanwhile.
    const rest = all.slice(2);
    expect([dueAfter(2, 1, rest), dueAfter(1, 1, rest), dueAfter(1, -1, rest)]).toEqual([4_000, 3_000, 3_000]);
    expect(stepFrom([], all[0], 1)).toBeUndefined();
    expect(stepFrom(all, undefined, 1)?.due_time).toBe(1_000);
  });
  it("finds the fire at the pointer", () => {
    const fires = [{ due_time: 1_000 }, { due_time: 4_000 }];
    expect(nearest(fires, 0)).toBe(0);
    expect(nearest(fires, 2_600)).toBe(1);
    expect(nearest([], 0)).toBe(-1);
  });
});
