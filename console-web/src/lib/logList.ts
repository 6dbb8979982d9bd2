/** The list of task logs: what its filters ask for, and how what is new joins what was read. */
import type { Log } from "./taskLog";

/** Names of the filters, as they stand in the address. */
export const LOG_FILTERS = ["status", "reason", "trigger", "task", "app", "executor", "range", "from", "until", "order", "shards"] as const;
type Name = (typeof LOG_FILTERS)[number];
export type LogFilters = Partial<Record<Name, string>>;

/** Spans of time that are a click away. `past` is everything up to now, `all` also what is still to come. */
export const RANGES = ["past", "15m", "1h", "24h", "upcoming", "all"] as const;
export type Range = (typeof RANGES)[number];

const LENGTHS: Partial<Record<Range, number>> = { "15m": 15 * 60_000, "1h": 3_600_000, "24h": 86_400_000 };

/** States of runs that wait: most of them lie in the time to come. */
const WAITING = new Set(["init", "queued", "retry"]);

/** The chosen range; without one, what makes sense for the state that is looked for. `undefined`: from and until are given. */
export function rangeOf(filters: LogFilters): Range | undefined {
  if (filters.from !== undefined || filters.until !== undefined) return undefined;
  const named = RANGES.find((range) => range === filters.range);
  return named ?? (filters.status !== undefined && WAITING.has(filters.status) ? "all" : "past");
}

/** Which come first; of what is to come, the next. */
export function orderOf(filters: LogFilters): "newest" | "oldest" {
  if (filters.order === "newest" || filters.order === "oldest") return filters.order;
  return rangeOf(filters) === "upcoming" ? "oldest" : "newest";
}

function whole(text: string | undefined): number | undefined {
  const number = Number(text);
  return text === undefined || !Number.isSafeInteger(number) ? undefined : number;
}

/** The limits in time that the filters mean at `now`, epoch ms: from inclusive, until exclusive. */
export function limitsOf(filters: LogFilters, now: number): { from?: number; until?: number } {
  const range = rangeOf(filters);
  if (range === undefined) return { from: whole(filters.from), until: whole(filters.until) };
  if (range === "all") return {};
  if (range === "upcoming") return { from: now };
  const length = LENGTHS[range];
  return { from: length === undefined ? undefined : now - length, until: now + 1 };
}

/** The filters with the span of time that they mean now: a link with them shows tomorrow what it shows today. */
export function frozen(filters: LogFilters, now: number): LogFilters {
  const { from, until } = limitsOf(filters, now);
  const rest = { ...filters, order: orderOf(filters), from: from?.toString(), until: until?.toString() };
  if (from !== undefined || until !== undefined) delete rest.range;
  return rest;
}

/**
 * Whether shards stand in the list as rows of their own. An executor and a reason are those of shards, not of the run
 * that sums them up.
 */
export function showsShards(filters: LogFilters): boolean {
  return filters.shards !== undefined || filters.executor !== undefined || filters.reason !== undefined;
}

/** Rows that the page keeps at most. */
export const MAX_ROWS = 20_000;

/** Filters with which a list goes on where one of `MAX_ROWS` has ended. Rows of the same instant come again. */
export function goOn(filters: LogFilters, last: Pick<Log, "fire_time" | "due_time">): LogFilters {
  const at = filters.status === undefined || filters.status === "succeeded" ? last.fire_time : last.due_time;
  const given = frozen(filters, at);
  if (orderOf(filters) === "oldest") return { ...given, from: String(at), until: filters.until };
  return { ...given, from: rangeOf(filters) === undefined ? filters.from : given.from, until: String(at + 1) };
}

/** Rows of a list from its beginning on. */
export interface Rows {
  items: readonly Log[];
  /** The list has no more than these. */
  isAll: boolean;
}

/** The beginning of a list: a page of it. */
export interface Beginning extends Rows {
  /** When it was asked for, cluster time, epoch ms. */
  at: number;
  /** The same in the life of the page, ms. */
  since: number;
}

/** What was read once, and its beginning as it is now. */
export interface Joined {
  /** The rows to show. */
  items: Log[];
  /** How many of the beginning are not among the rows. */
  newer: number;
  /** Whether rows may be missing between both, or after them: more is new than a page holds. */
  isApart: boolean;
}

/**
 * Whether nothing is missing between the beginning's end and the rows. One row in common does not tell: some stay on top
 * while others come in below them.
 */
function connects({ items, isAll }: Rows, beginning: Rows): boolean {
  const end = beginning.items.at(-1);
  if (beginning.isAll || end === undefined || items.some((log) => log.id === end.id)) return true;
  // It reaches beyond all that was read: what follows will be read from there on.
  const last = items.at(-1);
  return !isAll && last !== undefined && beginning.items.some((log) => log.id === last.id);
}

/** The beginning counts for the span that it covers: what is not in it any more is gone. */
function withBeginning(read: Rows, beginning: Rows): Rows & { isApart: boolean } {
  const isApart = !connects(read, beginning);
  if (beginning.isAll || read.items.length === 0) return { ...beginning, isApart };
  if (isApart) return { ...read, isApart };
  const ids = new Set(beginning.items.map((log) => log.id));
  const covered = read.items.findLastIndex((log) => ids.has(log.id));
  return { items: [...beginning.items, ...read.items.slice(covered + 1)], isAll: read.isAll, isApart };
}

/**
 * Joins what was read once with the beginning as the user has `seen` it at the top, and holds that against the beginning
 * as it is `now`: rows that are shown stay, in the state they have now, and what is new is counted. For a user who is
 * at the top, both are the same.
 */
export function join(read: Rows, seen: Rows | undefined, now: Rows | undefined): Joined {
  const rows = seen === undefined ? { ...read, isApart: false } : withBeginning(read, seen);
  const latest = new Map(now?.items.map((log) => [log.id, log]));
  const items = rows.items.map((log) => {
    const renewed = latest.get(log.id);
    return renewed !== undefined && renewed.version >= log.version ? renewed : log;
  });
  for (const { id } of rows.items) latest.delete(id);
  return { items, newer: latest.size, isApart: rows.isApart || (now !== undefined && !connects(rows, now)) };
}
