/** The overview in one line: what is the matter, the worst first. */
import type { Tone } from "./states";

/** What is known about the cluster, or of one tenant. `undefined`: not known, or not for this viewer. */
export interface Facts {
  /** Now, cluster time, epoch ms. */
  now: number;
  /** Minutes before this have been counted, epoch ms. */
  countedUntil?: number;
  /** Of the last hour. */
  fires?: number;
  failed?: number;
  discarded?: number;
  expired?: number;
  /** p99 of the last counted minutes, ms; `null` when nothing started in them. */
  latenessP99?: number | null;
  executorsOnline?: number;
  nodes?: { online: number; lost: number };
  /** Tasks with a run that waits because no executor takes it. */
  waitingTasks?: number;
  /** Runs that are past their due time, and wait. */
  overdueRuns?: number;
  /** Fires that are written for the coming minutes. */
  upcomingFires?: number;
  /** Everything that this viewer may know is known: only then nothing is the matter. */
  isWhole: boolean;
}

/** Something that is said of them; the texts have the same names. */
export type Finding =
  | { says: "no_executor" }
  | { says: "tasks_wait"; count: number }
  | { says: "runs_failed"; count: number }
  | { says: "nodes_lost"; count: number }
  | { says: "runs_overdue"; count: number }
  | { says: "runs_late"; ms: number }
  | { says: "runs_discarded"; count: number }
  | { says: "runs_expired"; count: number }
  | { says: "figures_old"; since: number }
  | { says: "nothing_fires" }
  | { says: "not_counted_yet" }
  | { says: "nothing_yet" }
  | { says: "all_well" };

/** A p99 from which on fires count as late, ms. */
export const LATE_MS = 1_000;

/** Figures come half a minute after their minute; this old, counting stands still, ms. */
export const OLD_MS = 5 * 60_000;

const TONES: Record<Finding["says"], Tone> = {
  no_executor: "bad",
  tasks_wait: "bad",
  runs_failed: "bad",
  nodes_lost: "odd",
  runs_overdue: "odd",
  runs_late: "odd",
  runs_discarded: "odd",
  runs_expired: "odd",
  figures_old: "odd",
  nothing_fires: "idle",
  not_counted_yet: "open",
  nothing_yet: "idle",
  all_well: "good",
};

/** How bad a finding is. */
export function toneOf(finding: Finding): Tone {
  return TONES[finding.says];
}

function counted<Says extends Finding["says"]>(says: Says, count: number | undefined): { says: Says; count: number }[] {
  return count === undefined || count === 0 ? [] : [{ says, count }];
}

/** What there is to say, the worst first; nothing while it is not known whether anything is the matter. */
export function verdict(facts: Facts): Finding[] {
  const { now, fires, executorsOnline, latenessP99, countedUntil } = facts;
  // A new installation has nothing to worry about, it has something to do.
  if (fires === 0 && executorsOnline === 0) return [{ says: "nothing_yet" }];
  const troubles: Finding[] = [
    ...(executorsOnline === 0 ? [{ says: "no_executor" } as const] : []),
    ...counted("tasks_wait", facts.waitingTasks),
    ...counted("runs_failed", facts.failed),
    ...counted("nodes_lost", facts.nodes?.lost),
    ...counted("runs_overdue", facts.overdueRuns),
    ...(latenessP99 != null && latenessP99 > LATE_MS ? [{ says: "runs_late", ms: latenessP99 } as const] : []),
    ...counted("runs_discarded", facts.discarded),
    ...counted("runs_expired", facts.expired),
    ...(countedUntil !== undefined && now - countedUntil > OLD_MS ? [{ says: "figures_old", since: countedUntil } as const] : []),
  ];
  if (troubles.length > 0) return troubles;
  if (fires === undefined || !facts.isWhole) return [];
  if (fires > 0) return [{ says: "all_well" }];
  return [{ says: (facts.upcomingFires ?? 0) > 0 ? "not_counted_yet" : "nothing_fires" }];
}
