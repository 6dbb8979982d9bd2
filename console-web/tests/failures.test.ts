import { describe, expect, it } from "vitest";
import type { Schema } from "../src/api/client";
import { groupFailures } from "../src/lib/failures";

describe("failures", () => {
  const bad = (id: string, task: string, reason: Schema<"RunReason">, finished_at: number | null) => ({ id, task, tenant: "demo", status: "failed" as const, reason, message: `m${id}`, due_time: 1, finished_at });
  it("are put together by task and reason, the newest first", () => {
    const groups = groupFailures([bad("1", "a", "timed_out", 5), bad("2", "a", "timed_out", 9), bad("3", "a", "no_executor", 7), bad("4", "b", "timed_out", 20), bad("5", "a", "timed_out", 6)]);
    expect(groups.map(({ task, reason, count, last, log: id, message }) => [task, reason, count, last, id, message])).toEqual([
      ["b", "timed_out", 1, 20, "4", "m4"],
      ["a", "timed_out", 3, 9, "2", "m2"],
      ["a", "no_executor", 1, 7, "3", "m3"],
    ]);
  });
});
