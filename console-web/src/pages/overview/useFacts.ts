/** What the overview knows: figures of the last hour, who is online, what waits. */
import { $api, type QueryOf, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { percentile, successShare, sumPoints } from "../../lib/figures";
import { HEARTBEATS_MS } from "../../lib/backOff";
import { useNow } from "../../lib/now";
import type { Facts } from "../../lib/verdict";
import { useFigures, type Figures } from "../../parts/useFigures";
import { useBadLogs } from "./useBadLogs";
import { useUpcoming } from "./useUpcoming";

/** How many of the last counted minutes count as "now". */
export const RECENT = 5;

/** Reasons for which a run waits because no executor takes it. */
const NOT_TAKEN = new Set(["no_executor", "not_accepted", "all_busy"]);

/** So long after its due time a run that waits is overdue, ms: nodes look at it again every 250 ms. */
const OVERDUE_MS = 5_000;

const HOUR_MS = 3_600_000;

/** Most rows that are looked at to see what waits. */
const LOOK = 100;

/** Who is online; `undefined`: not read yet, or not for this viewer. */
export interface EngineState {
  nodes?: Schema<"Node">[];
  executors?: Schema<"Executor">[];
  /** There are more than were read. */
  moreExecutors: boolean;
  /** Why they could not be read; `null`: they could, or are on their way. */
  nodesError: unknown;
  executorsError: unknown;
  seesNodes: boolean;
  seesExecutors: boolean;
}

/** The figures of the row on top. `null`: there is nothing to tell. */
export interface Row {
  minutes: number;
  perSecond?: number;
  firesHour?: number;
  success?: number | null;
  p50?: number | null;
  p99?: number | null;
  failed?: number;
  /** They are on their way. */
  isWaiting: boolean;
  engine: EngineState;
}

function useEngine(tenant: string | undefined): EngineState {
  const { may } = useSession();
  const seesNodes = may("nodes.read", { tenant: null });
  const seesExecutors = may("executors.read", { tenant });
  const nodes = $api.useQuery("get", "/nodes", {}, { enabled: seesNodes, refetchInterval: HEARTBEATS_MS });
  const executors = $api.useQuery("get", "/executors", { params: { query: { tenant, limit: 500 } } }, { enabled: seesExecutors, refetchInterval: HEARTBEATS_MS });
  return {
    nodes: nodes.data?.items,
    executors: executors.data?.items,
    moreExecutors: executors.data?.next != null,
    nodesError: nodes.error,
    executorsError: executors.error,
    seesNodes,
    seesExecutors,
  };
}

interface Waiting extends Pick<Facts, "waitingTasks" | "overdueRuns"> {
  isKnown: boolean;
  error: unknown;
}

/** Runs that wait: how many tasks for an executor, how many runs past their due time. */
function useWaiting(tenant: string | undefined): Waiting {
  const { may } = useSession();
  const now = useNow(OVERDUE_MS);
  const enabled = may("task_logs.read", { tenant });
  const ask = (status: QueryOf<"list_task_logs">["status"]) => ({ params: { query: { tenant, status, order: "oldest" as const, limit: LOOK } } });
  const retries = $api.useQuery("get", "/task-logs", ask("retry"), { enabled });
  const queued = $api.useQuery("get", "/task-logs", ask("queued"), { enabled });
  // Those that no node has claimed.
  const written = $api.useQuery("get", "/task-logs", ask("init"), { enabled });
  const waiting = retries.data?.items.filter((log) => NOT_TAKEN.has(log.reason)).map((log) => log.task);
  const overdue = (logs: typeof queued.data) => logs?.items.filter((log) => log.due_time < now - OVERDUE_MS).length;
  const [claimed, unclaimed] = [overdue(queued.data), overdue(written.data)];
  return {
    waitingTasks: waiting === undefined ? undefined : new Set(waiting).size,
    overdueRuns: claimed === undefined && unclaimed === undefined ? undefined : (claimed ?? 0) + (unclaimed ?? 0),
    isKnown: !enabled || [waiting, claimed, unclaimed].every((each) => each !== undefined),
    error: retries.error ?? queued.error ?? written.error,
  };
}

function rowOf({ answer, filled, totals, error, isPartial }: Figures, failed: number, engine: EngineState): Row {
  if (answer === undefined) return { minutes: RECENT, isWaiting: error === null && !isPartial, engine };
  const recent = sumPoints(filled.points.slice(-RECENT));
  return {
    minutes: RECENT,
    perSecond: recent.fires / (RECENT * 60),
    firesHour: totals.fires,
    success: successShare(totals),
    p50: percentile(recent.lateness, answer.bounds_ms, 0.5),
    p99: percentile(recent.lateness, answer.bounds_ms, 0.99),
    failed,
    isWaiting: false,
    engine,
  };
}

/** A node that left said so; one that is neither online nor left is lost. */
function nodesOf(nodes: Schema<"Node">[] | undefined): Facts["nodes"] {
  if (nodes === undefined) return undefined;
  return { online: nodes.filter((node) => node.online).length, lost: nodes.filter((node) => !node.online && node.left_at == null).length };
}

/** Those of the last minute are not counted yet, and stand in the list of failures. */
function failedSince(logs: Schema<"TaskLog">[] | undefined, since: number): number {
  return logs?.filter((log) => log.fire_time >= since).length ?? 0;
}

/** The facts for the verdict, and the figures that it goes by. */
export function useFacts(tenant: string | undefined): { hour: Figures; row: Row; facts: Facts; isWaiting: boolean; engine: EngineState; error: unknown } {
  const now = useNow(60_000);
  const hour = useFigures({ tenant, range: "1h" });
  const engine = useEngine(tenant);
  const { isKnown: isWaitingKnown, error: waitingError, ...waiting } = useWaiting(tenant);
  const { upcoming, isKnown: isUpcomingKnown, error: upcomingError } = useUpcoming(tenant);
  const bad = useBadLogs(tenant, "failed");
  const failures = Math.max(hour.totals.failed, failedSince(bad.logs, now - HOUR_MS));
  const row = rowOf(hour, failures, engine);
  const isKnown = hour.answer !== undefined;
  const isEngineKnown = (!engine.seesNodes || engine.nodes !== undefined) && (!engine.seesExecutors || engine.executors !== undefined);
  const isWhole = isWaitingKnown && isUpcomingKnown && isEngineKnown && bad.isKnown;
  const error = hour.error ?? engine.nodesError ?? engine.executorsError ?? waitingError;
  // Those two stand in their own sections.
  const isLost = [error, bad.error, upcomingError].some((each) => each !== null && each !== undefined);
  const facts: Facts = {
    now,
    ...waiting,
    upcomingFires: upcoming?.lanes.reduce((sum, lane) => sum + lane.fires, 0),
    executorsOnline: engine.executors?.length,
    nodes: nodesOf(engine.nodes),
    isWhole,
    ...(isKnown
      ? {
          countedUntil: hour.answer?.counted_until,
          fires: hour.totals.fires,
          failed: failures,
          discarded: hour.totals.discarded,
          expired: hour.totals.expired,
          latenessP99: row.p99,
        }
      : {}),
  };
  return { hour, row, facts, isWaiting: row.isWaiting || (isKnown && !isWhole && !isLost), engine, error };
}
