import { expect, it } from "vitest";
import { mark } from "../src/lib/previewMarks";

const fire = (at: string) => {
  const fire_time = Date.parse(at);
  return { kind: "fires" as const, fire_time, due_time: fire_time, last: fire_time, count: 1, more: false };
};

it("marks where the clock was changed between two lines", () => {
  const lines = [fire("2026-03-28T01:30:00Z"), fire("2026-03-29T01:00:00Z"), fire("2026-03-30T00:30:00Z")];
  expect(mark(lines, "Europe/Berlin").map(({ offset, changedFrom }) => [offset, changedFrom])).toEqual([
    ["+01:00", undefined],
    ["+02:00", "+01:00"],
    ["+02:00", undefined],
  ]);
  expect(mark(lines, "Asia/Shanghai").every(({ changedFrom }) => changedFrom === undefined)).toBe(true);
});
