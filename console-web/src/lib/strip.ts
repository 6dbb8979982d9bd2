/** The last runs of a task as a strip of bars. */
import type { Schema } from "../api/client";
import { toneOfLog, type Tone } from "./states";

type TaskLog = Schema<"TaskLog">;

/** One run in the strip. */
export interface Bar {
  log: TaskLog;
  tone: Tone;
  /** From the start of its last attempt to its end, ms; `null` when it has not started or not ended. */
  duration: number | null;
  /** From when the last attempt was due to its start, ms. */
  lateness: number | null;
  /** 0 to 1. */
  height: number;
}

/** Height of a bar that says nothing of a duration. */
export const LEAST_HEIGHT = 0.15;

/** How long a run's last attempt took. */
export function durationOf({ started_at, finished_at }: Pick<TaskLog, "started_at" | "finished_at">): number | null {
  return started_at == null || finished_at == null ? null : Math.max(0, finished_at - started_at);
}

/** How late a run's last attempt started. */
export function latenessOf({ started_at, due_time }: Pick<TaskLog, "started_at" | "due_time">): number | null {
  return started_at == null ? null : started_at - due_time;
}

/**
 * The runs, oldest first, as bars. Heights are logarithmic: a run of a minute among runs of
 * milliseconds must not make those disappear.
 */
export function barsOf(newestFirst: readonly TaskLog[]): Bar[] {
  const durations = newestFirst.map(durationOf);
  const longest = Math.max(1, ...durations.map((duration) => duration ?? 0));
  const scale = (duration: number) => LEAST_HEIGHT + (1 - LEAST_HEIGHT) * (Math.log1p(duration) / Math.log1p(longest));
  return newestFirst
    .map((log, index) => {
      const duration = durations[index] ?? null;
      return { log, tone: toneOfLog(log.status), duration, lateness: latenessOf(log), height: duration === null ? LEAST_HEIGHT : scale(duration) };
    })
    .reverse();
}

/** How many of the runs that have ended did so well: 0 to 1, `null` when none has ended. */
export function successRate(logs: readonly Pick<TaskLog, "status">[]): number | null {
  const ended = logs.filter(({ status }) => ["succeeded", "failed", "discarded", "expired"].includes(status));
  return ended.length === 0 ? null : ended.filter(({ status }) => status === "succeeded").length / ended.length;
}
