import { expect, it } from "vitest";
import { countFires, PAGE, progressOf } from "../src/lib/backfill";

const fire = (fire_time: number, kind: "fires" | "skipped" = "fires") => {
  const line = { fire_time, due_time: fire_time, last: fire_time, count: 1, more: false };
  return kind === "fires" ? { ...line, kind } : { ...line, kind, reason: "calendar_day" as const };
};

/** A preview of a fire every `step`, with the instants after which it was asked for. */
function every(step: number) {
  const asked: number[] = [];
  const read = (after: number) => {
    asked.push(after);
    const first = (Math.floor(after / step) + 1) * step;
    return Promise.resolve(Array.from({ length: PAGE }, (_, index) => fire(first + index * step)));
  };
  return { asked, read };
}

it("counts what fires before the end, not what is skipped", async () => {
  const read = () => Promise.resolve([fire(1), fire(2, "skipped"), fire(3), fire(5)]);
  expect(await countFires(read, 1, 5)).toEqual({ fires: 2, isAll: true, about: 2 });
});

it("counts on, page after page, until the end", async () => {
  const { asked, read } = every(10);
  expect(await countFires(read, 10_000, 10_000 + 86_400)).toEqual({ fires: 8_640, isAll: true, about: 8_640 });
  expect(asked).toHaveLength(9);
  expect(asked.slice(0, 2)).toEqual([9_999, 19_990]);
});

it("says a full page that ends with the range is all", async () => {
  expect(await countFires(every(1).read, 0, PAGE)).toEqual({ fires: PAGE, isAll: true, about: PAGE });
});

it("reads a bounded number of pages, and goes by the rate from there", async () => {
  const { asked, read } = every(1_000);
  expect(await countFires(read, 0, 366 * 86_400_000)).toEqual({ fires: 10_000, isAll: false, about: 32_000_000 });
  expect(asked).toHaveLength(10);
});

it("tells how far a backfill is", () => {
  expect(progressOf({ from: 100, until: 200, next_at: 150, status: "open" })).toBe(50);
  expect(progressOf({ from: 100, until: 200, next_at: 100, status: "open" })).toBe(0);
  expect(progressOf({ from: 100, until: 200, next_at: 300, status: "cancelled" })).toBe(100);
  expect(progressOf({ from: 100, until: 200, next_at: 120, status: "done" })).toBe(100);
});
