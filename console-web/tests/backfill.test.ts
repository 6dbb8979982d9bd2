import { expect, it } from "vitest";
import { countFires, MAX_COUNTED, progressOf } from "../src/lib/backfill";

const fire = (fire_time: number, kind: "fires" | "skipped" = "fires") => {
  const line = { fire_time, due_time: fire_time, last: fire_time, count: 1, more: false };
  return kind === "fires" ? { ...line, kind } : { ...line, kind, reason: "calendar_day" as const };
};

it("counts what fires before the end, not what is skipped", () => {
  expect(countFires([fire(1), fire(2, "skipped"), fire(3), fire(5)], 5)).toEqual({ fires: 2, isAll: true });
});

it("says when it did not see all", () => {
  const many = Array.from({ length: MAX_COUNTED }, (_, at) => fire(at));
  expect(countFires(many, MAX_COUNTED)).toEqual({ fires: MAX_COUNTED, isAll: false });
  expect(countFires(many, 10)).toEqual({ fires: 10, isAll: true });
});

it("tells how far a backfill is", () => {
  expect(progressOf({ from: 100, until: 200, next_at: 150, status: "open" })).toBe(50);
  expect(progressOf({ from: 100, until: 200, next_at: 100, status: "open" })).toBe(0);
  expect(progressOf({ from: 100, until: 200, next_at: 300, status: "cancelled" })).toBe(100);
  expect(progressOf({ from: 100, until: 200, next_at: 120, status: "done" })).toBe(100);
});
