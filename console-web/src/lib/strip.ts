/** The last runs of a task as a strip of bars. */
import type { Schema } from "../api/client";
import { toneOfLog, type Tone } from "./states";
import { duration, lateness } from "./taskLog";

type TaskLog = Schema<"TaskLog">;

/** One run in the strip. */
export interface Bar {
  log: TaskLog;
  tone: Tone;
  /** From the start of its last attempt to its end, ms; unknown when it has not started or not ended. */
  duration: number | undefined;
  /** From when the last attempt was due to its start, ms. */
  lateness: number | undefined;
  /** 0 to 1. */
  height: number;
}

/** Height of a bar that says nothing of a duration. */
export const LEAST_HEIGHT = 0.15;

/**
 * The runs, oldest first, as bars. Heights are logarithmic: a run of a minute among runs of
 * milliseconds must not make those disappear.
 */
export function barsOf(newestFirst: readonly TaskLog[]): Bar[] {
  const durations = newestFirst.map(duration);
  const longest = Math.max(1, ...durations.map((took) => took ?? 0));
  const scale = (took: number) => LEAST_HEIGHT + (1 - LEAST_HEIGHT) * (Math.log1p(took) / Math.log1p(longest));
  return newestFirst
    .map((log, index) => {
      const took = durations[index];
      return { log, tone: toneOfLog(log.status), duration: took, lateness: lateness(log), height: took === undefined ? LEAST_HEIGHT : scale(took) };
    })
    .reverse();
}

/** How many of the runs that have ended did so well: 0 to 1, `null` when none has ended. */
export function successRate(logs: readonly Pick<TaskLog, "status">[]): number | null {
  const ended = logs.filter(({ status }) => ["succeeded", "failed", "discarded", "expired"].includes(status));
  return ended.length === 0 ? null : ended.filter(({ status }) => status === "succeeded").length / ended.length;
}
