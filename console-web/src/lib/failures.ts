/** Runs that ended badly, put together where task and reason are the same. */
import type { Schema } from "../api/client";

/** What one line needs to know of a run. */
export type BadRun = Pick<Schema<"TaskLog">, "id" | "task" | "task_name" | "tenant" | "status" | "reason" | "message" | "due_time" | "finished_at">;

/** Runs of one task that ended badly for one reason. */
export interface Group {
  key: string;
  task: string;
  /** The task's name; its id when it is gone. */
  name: string;
  tenant: string;
  status: Schema<"RunStatus">;
  reason: string;
  count: number;
  /** When the newest of them ended, epoch ms. */
  last: number;
  /** The newest of them. */
  log: string;
  message: string;
}

function endOf(run: BadRun): number {
  return run.finished_at ?? run.due_time;
}

/** The groups, the one with the newest run first. */
export function groupFailures(runs: readonly BadRun[]): Group[] {
  const groups = new Map<string, Group>();
  for (const run of runs) {
    const key = `${run.task} ${run.status} ${run.reason}`;
    const last = endOf(run);
    const known = groups.get(key);
    if (known === undefined || known.last < last) {
      const { task, task_name, tenant, status, reason, message } = run;
      groups.set(key, { key, task, name: task_name ?? task, tenant, status, reason, message, last, log: run.id, count: (known?.count ?? 0) + 1 });
    } else {
      known.count += 1;
    }
  }
  return [...groups.values()].sort((a, b) => b.last - a.last);
}
