import { describe, expect, it } from "vitest";
import { duration, hasOnlyBeenTold, lateness, stopping, storyOf, type Log } from "../src/lib/taskLog";

type Attempt = NonNullable<Log["attempts"]>[number];

const LOG: Log = {
  id: "7", task: "1", app: "3", tenant: "demo", written_at: 1_000, revision: 1, status: "succeeded", reason: "", trigger: "schedule", priority: 5, fire_time: 10_000, due_time: 10_000,
  attempt: 1, failures: 0, shard_index: 0, shard_total: 1, message: "", output: "", version: 3, node: "2", executor: "5",
  queued_at: 6_000, dispatched_at: 7_000, started_at: 10_004, finished_at: 10_504,
};
const kinds = (log: Log) => storyOf(log).map((step) => (step.attempt === undefined ? step.kind : `${step.kind} ${step.attempt}`));

describe("the story of a run", () => {
  it("is told in the order in which things happened", () => {
    expect(kinds(LOG)).toEqual(["written", "claimed 1", "dispatched 1", "due", "started 1", "ended"]);
    const ended = storyOf(LOG).at(-1);
    expect(ended).toMatchObject({ ms: 500, status: "succeeded" });
    expect(storyOf(LOG).find((step) => step.kind === "started")?.ms).toBe(4);
  });

  it("ends with the end, also when all happened in one instant", () => {
    const at = 10_000;
    expect(kinds({ ...LOG, queued_at: at, dispatched_at: at, started_at: at, finished_at: at })).toEqual(["written", "claimed 1", "dispatched 1", "due", "started 1", "ended"]);
  });

  it("names the fire where the run was due later", () => {
    expect(kinds({ ...LOG, fire_time: 4_000 })).toEqual(["written", "fire", "claimed 1", "dispatched 1", "due", "started 1", "ended"]);
  });

  it("tells every attempt that the node tells of", () => {
    const first: Attempt = { attempt: 1, due_time: 10_000, dispatched_at: 7_000, started_at: 10_001, finished_at: 10_100, status: "failed", reason: "handler_failed", message: "no" };
    const second: Attempt = { ...first, attempt: 2, due_time: 12_000, dispatched_at: 11_000, started_at: 12_000, finished_at: 12_050, status: "succeeded", reason: "" };
    const log = { ...LOG, attempt: 2, due_time: 12_000, dispatched_at: 11_000, started_at: 12_000, finished_at: 12_050, attempts: [first, second] };
    expect(kinds(log)).toEqual(["written", "claimed 1", "dispatched 1", "due", "started 1", "failed 1", "dispatched 2", "due 2", "started 2", "ended"]);
  });

  it("numbers the claim that is kept: it is that of the last attempt, or of the one to come", () => {
    const first: Attempt = { attempt: 1, due_time: 10_000, dispatched_at: 7_000, started_at: 10_001, finished_at: 10_100, status: "retry", reason: "handler_failed", message: "no", node: "2" };
    const second: Attempt = { ...first, attempt: 2, due_time: 12_000, dispatched_at: 11_000, started_at: 12_000, finished_at: 12_050, status: "succeeded", reason: "", node: "9" };
    const log = { ...LOG, attempt: 2, queued_at: 10_500, due_time: 12_000, dispatched_at: 11_000, started_at: 12_000, finished_at: 12_050, attempts: [first, second] };
    expect(kinds(log)).toContain("claimed 2");
    expect(storyOf(log).filter(({ kind }) => kind === "dispatched").map(({ node }) => node)).toEqual(["2", "9"]);
    expect(kinds({ ...log, attempt: 1, status: "queued", attempts: [first] })).toContain("claimed 2");
    expect(kinds({ ...LOG, attempt: 0, status: "queued", dispatched_at: null, started_at: null, finished_at: null })).toEqual(["written", "claimed 1", "due"]);
  });

  it("ends where the run is, and says when it is due again", () => {
    expect(kinds({ ...LOG, status: "retry", due_time: 15_000, dispatched_at: null, started_at: null, finished_at: null, queued_at: null, fire_time: 15_000 })).toEqual(["written", "due"]);
    expect(kinds({ ...LOG, status: "dispatched", started_at: null, finished_at: null })).toEqual(["written", "claimed 1", "dispatched 1", "due"]);
  });
});

describe("spans", () => {
  it("are unknown until they begin", () => {
    expect(lateness({ status: "dispatched", started_at: null, due_time: 5 })).toBeUndefined();
    expect(duration({ started_at: null, finished_at: 5 })).toBeUndefined();
    expect(duration({ started_at: 5, finished_at: 9 })).toBe(4);
    expect(duration({ started_at: 5, finished_at: null })).toBeUndefined();
    expect(lateness({ status: "succeeded", started_at: 9, due_time: 5 })).toBe(4);
  });
});

describe("ending a run", () => {
  it("is done, or only asked of the executor, as the answer tells", () => {
    expect([200, 202].map((status) => hasOnlyBeenTold({ status }))).toEqual([false, true]);
  });

  it("is a cancel before an executor has it, and a kill after", () => {
    expect(["init", "queued", "retry"].map(stopping)).toEqual(["cancel", "cancel", "cancel"]);
    expect(stopping("dispatched")).toBe("kill");
    expect(stopping("stopping")).toBe("waiting");
    expect(["succeeded", "failed", "discarded", "expired", "cancelled"].map(stopping)).toEqual(Array(5).fill(undefined));
  });
});
