import { describe, expect, it } from "vitest";
import { OLD_MS, toneOf, verdict, type Facts } from "../src/lib/verdict";

const WELL: Facts = { now: 10_000_000, countedUntil: 9_970_000, fires: 500, failed: 0, discarded: 0, expired: 0, latenessP99: 12, executorsOnline: 2, nodes: { online: 3, lost: 0 }, waitingTasks: 0, overdueRuns: 0, isWhole: true };
const words = (facts: Facts) => verdict(facts).map((finding) => finding.says);

describe("the verdict", () => {
  it("is good when nothing is the matter", () => {
    expect(words(WELL)).toEqual(["all_well"]);
    expect(verdict(WELL).map(toneOf)).toEqual(["good"]);
  });
  it("says nothing before anything is known", () => {
    expect(verdict({ now: 0, isWhole: false })).toEqual([]);
  });
  it("names the worst first", () => {
    const facts = { ...WELL, executorsOnline: 0, waitingTasks: 2, failed: 12, nodes: { online: 2, lost: 1 }, overdueRuns: 4, latenessP99: 3_200, discarded: 1, expired: 5 };
    expect(words(facts)).toEqual(["no_executor", "tasks_wait", "runs_failed", "nodes_lost", "runs_overdue", "runs_late", "runs_discarded", "runs_expired"]);
    expect(toneOf({ says: "runs_failed", count: 1 })).toBe("bad");
  });
  it("counts what it names", () => {
    expect(verdict({ ...WELL, failed: 12 })).toEqual([{ says: "runs_failed", count: 12 }]);
    expect(verdict({ ...WELL, latenessP99: 3_200 })).toEqual([{ says: "runs_late", ms: 3_200 }]);
  });
  it("calls a second's lateness late, and not less", () => {
    expect(words({ ...WELL, latenessP99: 1_000 })).toEqual(["all_well"]);
    expect(words({ ...WELL, latenessP99: null })).toEqual(["all_well"]);
  });
  it("does not call old figures good", () => {
    expect(words({ ...WELL, countedUntil: WELL.now - OLD_MS - 1 })).toEqual(["figures_old"]);
  });
  it("tells a newcomer from an idle cluster", () => {
    expect(words({ ...WELL, fires: 0, latenessP99: null, executorsOnline: 0 })).toEqual(["nothing_yet"]);
    expect(words({ ...WELL, fires: 0, latenessP99: null })).toEqual(["nothing_fires"]);
    expect(words({ ...WELL, fires: 0, latenessP99: null, upcomingFires: 3 })).toEqual(["not_counted_yet"]);
  });
  it("does not call well what it does not know whole", () => {
    expect(words({ ...WELL, waitingTasks: undefined, isWhole: false })).toEqual([]);
    expect(words({ ...WELL, fires: 0, latenessP99: null, isWhole: false })).toEqual([]);
    expect(words({ ...WELL, failed: 3, isWhole: false })).toEqual(["runs_failed"]);
  });
  it("judges without what the viewer may not see", () => {
    expect(words({ now: WELL.now, countedUntil: WELL.countedUntil, fires: 3, failed: 0, isWhole: true })).toEqual(["all_well"]);
  });
});
