/** A task log as the pages show it: its spans, and its life as a line of steps. */
import type { Schema } from "../api/client";
import { hasEnded } from "./states";

/** One dispatch of a run to an executor. */
export type Attempt = Schema<"Attempt">;

/** A task log; only that of one run by itself tells its attempts. */
export type Log = Schema<"TaskLog"> & { attempts?: Attempt[] };

/** How late the last attempt started, ms; unknown before it did, and when its run is due again. */
export function lateness(log: Pick<Log, "started_at" | "due_time" | "status">): number | undefined {
  const isDueAgain = ["init", "queued", "retry"].includes(log.status);
  return log.started_at == null || isDueAgain ? undefined : Math.max(0, log.started_at - log.due_time);
}

/** How long the last attempt ran, ms; unknown before it has ended. */
export function duration(log: Pick<Log, "started_at" | "finished_at">): number | undefined {
  return log.started_at == null || log.finished_at == null ? undefined : Math.max(0, log.finished_at - log.started_at);
}

/** Whether a run has shards: it is their parent. */
export function isParent(log: Pick<Log, "shards">): boolean {
  return log.shards != null;
}

/** What can be done to a run that has not ended: take it back before an executor has it, or stop it. */
export function stopping(status: string): "cancel" | "kill" | "waiting" | undefined {
  if (hasEnded(status)) return undefined;
  if (status === "stopping") return "waiting";
  return status === "dispatched" ? "kill" : "cancel";
}

/** Of the answer to a cancel: the executor has been told (202), and has not confirmed yet. Which it is shows in the answer alone. */
export function hasOnlyBeenTold({ status }: Pick<Response, "status">): boolean {
  return status === 202;
}

/** What happened, or is to happen. */
export type StepKind = "written" | "fire" | "due" | "claimed" | "dispatched" | "started" | "failed" | "ended";

/** A step of a run's life. */
export interface Step {
  kind: StepKind;
  at: number;
  /** Which attempt; absent where it belongs to none. */
  attempt?: number;
  /** Id of the node that did it. */
  node?: string | null;
  executor?: string | null;
  executor_address?: string | null;
  /** Of a start: how late it was, ms. Of an end: how long the attempt ran. */
  ms?: number;
  /** Of an end. */
  status?: string;
  reason?: string;
  message?: string;
}

const RANKS: Record<StepKind, number> = { written: 0, fire: 1, claimed: 2, dispatched: 3, due: 4, started: 5, failed: 6, ended: 7 };

function stepsOfAttempt(attempt: Attempt, isLast: boolean, isOver: boolean): Step[] {
  const steps: Step[] = [];
  const { attempt: number, executor, executor_address, node } = attempt;
  if (number > 1) steps.push({ kind: "due", at: attempt.due_time, attempt: number });
  if (attempt.dispatched_at != null) steps.push({ kind: "dispatched", at: attempt.dispatched_at, attempt: number, executor, executor_address, node });
  if (attempt.started_at != null) {
    steps.push({ kind: "started", at: attempt.started_at, attempt: number, ms: attempt.started_at - attempt.due_time });
  }
  // The end of the last attempt is the end of the run, which the log tells.
  if (attempt.finished_at != null && !(isLast && isOver)) {
    const ms = duration(attempt);
    const { status, reason, message } = attempt;
    steps.push({ kind: "failed", at: attempt.finished_at, attempt: number, ms, status, reason, message });
  }
  return steps;
}

/** Which attempt was claimed then: the first one that was not dispatched before, or the one to come. */
function claimOf(at: number, attempts: readonly Attempt[]): number {
  const claimed = attempts.find(({ dispatched_at: dispatched }) => dispatched == null || dispatched >= at);
  return Math.max(1, claimed?.attempt ?? (attempts.at(-1)?.attempt ?? 0) + 1);
}

/** What the log itself tells of its last attempt. */
function lastAttempt(log: Log): Attempt {
  return { ...log, finished_at: null };
}

/** Which of two steps of one instant came first: by attempt, and the end of the run last. */
function numberOf({ kind, attempt }: Step): number {
  if (kind === "ended") return Number.MAX_SAFE_INTEGER;
  return kind === "written" || kind === "fire" ? 0 : (attempt ?? 1);
}

/** The steps in the order in which they happened. */
export function storyOf(log: Log): Step[] {
  const attempts = log.attempts === undefined || log.attempts.length === 0 ? [lastAttempt(log)] : log.attempts;
  const isOver = hasEnded(log.status);
  const firstDue = attempts[0]?.due_time ?? log.due_time;
  const steps: Step[] = [];
  steps.push({ kind: "written", at: log.written_at, node: log.written_by });
  if (log.fire_time !== firstDue) steps.push({ kind: "fire", at: log.fire_time });
  steps.push({ kind: "due", at: firstDue });
  // Only the last claim is kept: it is that of the last attempt.
  if (log.queued_at != null) steps.push({ kind: "claimed", at: log.queued_at, node: log.node, attempt: claimOf(log.queued_at, attempts) });
  attempts.forEach((attempt, index) => steps.push(...stepsOfAttempt(attempt, index === attempts.length - 1, isOver)));
  // A retry that waits has a due time, and no attempt yet.
  if (log.status === "retry" && !steps.some((step) => step.kind === "due" && step.at === log.due_time)) steps.push({ kind: "due", at: log.due_time });
  if (isOver && log.finished_at != null) {
    const { status, reason, message } = log;
    steps.push({ kind: "ended", at: log.finished_at, ms: duration(log), status, reason, message });
  }
  return steps.sort((a, b) => a.at - b.at || numberOf(a) - numberOf(b) || RANKS[a.kind] - RANKS[b.kind]);
}
