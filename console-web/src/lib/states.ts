/** The states of tasks and of their runs, and what they mean to the reader. */

/** good: as it should be; bad: look at it; odd: worth a look; open: goes on; idle: nothing happens. */
export type Tone = "good" | "bad" | "odd" | "open" | "idle";

/** States of a task log, in the order of a run's life. */
export const LOG_STATUSES = ["init", "queued", "dispatched", "retry", "stopping", "succeeded", "failed", "discarded", "expired", "cancelled"] as const;
export type LogStatus = (typeof LOG_STATUSES)[number];

/** States of a task. */
export const TASK_STATES = ["started", "stopped", "paused"] as const;
export type TaskState = (typeof TASK_STATES)[number];

const LOG_TONES: Record<LogStatus, Tone> = {
  init: "open",
  queued: "open",
  dispatched: "open",
  retry: "odd",
  stopping: "odd",
  succeeded: "good",
  failed: "bad",
  discarded: "odd",
  expired: "odd",
  cancelled: "idle",
};

const TASK_TONES: Record<TaskState, Tone> = { started: "good", stopped: "idle", paused: "odd" };

export function isLogStatus(word: string): word is LogStatus {
  return word in LOG_TONES;
}

export function isTaskState(word: string): word is TaskState {
  return word in TASK_TONES;
}

/** A word of a newer node is shown as it is. */
export function toneOfLog(word: string): Tone {
  return isLogStatus(word) ? LOG_TONES[word] : "idle";
}

export function toneOfTask(word: string): Tone {
  return isTaskState(word) ? TASK_TONES[word] : "idle";
}

/** Whether nothing more will happen to a run in this state. */
export function hasEnded(status: string): boolean {
  return ["succeeded", "failed", "discarded", "expired", "cancelled"].includes(status);
}
