/** Figures over time: which window is asked for, how points add up, what a percentile of their sum is. */
import type { Schema } from "../api/client";
import { span } from "./time";

/** Figures of one stretch of time. */
export type Point = Schema<"Point">;
/** Times in buckets. */
export type Times = Schema<"Times">;

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Widths of a point that the API knows, ms. */
export const STEPS = { "1m": MINUTE, "5m": 5 * MINUTE, "1h": HOUR, "1d": DAY } as const;
/** One of them. */
export type Step = keyof typeof STEPS;

/** How far back one may look, ms, and the step that suits it. */
export const RANGES = {
  "1h": { ms: HOUR, step: "1m" },
  "6h": { ms: 6 * HOUR, step: "5m" },
  "24h": { ms: DAY, step: "5m" },
  "7d": { ms: 7 * DAY, step: "1h" },
  "30d": { ms: 30 * DAY, step: "1h" },
  "90d": { ms: 90 * DAY, step: "1d" },
} as const satisfies Record<string, { ms: number; step: Step }>;
/** One of them. */
export type Range = keyof typeof RANGES;

/** The word of an address as a range; what nobody knows is the last hour. */
export function rangeOf(word: string | undefined, known: readonly Range[]): Range {
  return known.find((each) => each === word) ?? "1h";
}

const MOST_POINTS = 2_000;
const MOST_MS = 91 * DAY;

/** The steps in which a range can be asked for: at least two points, and no more than the API gives. */
export function stepsOf(range: Range): Step[] {
  const { ms } = RANGES[range];
  return (Object.keys(STEPS) as Step[]).filter((step) => ms / STEPS[step] >= 2 && (ms + 2 * slotOf(range, step)) / STEPS[step] <= MOST_POINTS);
}

/** The word of an address as a step of that range; otherwise the one that suits it. */
export function stepOf(word: string | undefined, range: Range): Step {
  return stepsOf(range).find((each) => each === word) ?? RANGES[range].step;
}

/** What is asked of the API. */
export interface Asked {
  from: number;
  until: number;
}

/** How long one question stays the same, ms. */
function slotOf(range: Range, step: Step): number {
  return Math.max(STEPS[step], Math.min(RANGES[range].ms / 6, HOUR));
}

/** The last instant, of those that lie `width` apart and one of which is `shift`, that is not after `at`. */
function floorTo(at: number, width: number, shift: number): number {
  return Math.floor((at - shift) / width) * width + shift;
}

/**
 * The window that holds a range before `now`. It stays the same for a while, and reaches into the
 * future: the stream of events has it read again, and the same question finds the new points.
 * `midnight` is an instant at which a day begins for the viewer; days are counted from it.
 */
export function windowOf(range: Range, step: Step, now: number, midnight = 0): Asked {
  const slot = slotOf(range, step);
  const shift = step === "1d" ? midnight % DAY : 0;
  const from = floorTo(floorTo(now, slot, shift) - RANGES[range].ms, STEPS[step], shift);
  return { from, until: from + Math.min(RANGES[range].ms + 2 * slot, MOST_MS) };
}

/** Points without a hole: what has no fires is left out by the API, and what is not counted yet is no zero. */
export interface Filled {
  instants: number[];
  points: (Point | undefined)[];
}

/** The points of the range that ends where counting does; `undefined` where nothing fired. */
export function fill(answer: Schema<"Statistics">, range: Range): Filled {
  const { from, step_ms: width, counted_until: counted, items } = answer;
  const end = Math.min(answer.until, counted);
  const first = from + Math.max(0, Math.ceil((end - RANGES[range].ms - from) / width)) * width;
  const known = new Map(items.map((point) => [point.start, point]));
  const instants: number[] = [];
  for (let at = first; at < end; at += width) instants.push(at);
  return { instants, points: instants.map((at) => known.get(at)) };
}

/** The bucket sums of several times. */
export type Sum = Pick<Times, "count" | "sum_ms" | "buckets"> & { max_ms: number };

function sumTimes(times: readonly Times[]): Sum {
  const sum: Sum = { count: 0, sum_ms: 0, max_ms: 0, buckets: [] };
  for (const each of times) {
    sum.count += each.count;
    sum.sum_ms += each.sum_ms;
    sum.max_ms = Math.max(sum.max_ms, each.max_ms ?? 0);
    each.buckets.forEach((count, index) => (sum.buckets[index] = (sum.buckets[index] ?? 0) + count));
  }
  return sum;
}

/** How fires end, or that they have not. */
export const OUTCOMES = ["succeeded", "failed", "discarded", "expired", "cancelled", "open"] as const;
/** One of them. */
export type Outcome = (typeof OUTCOMES)[number];

/** Several points together. */
export type Totals = Record<Outcome | "fires" | "failures", number> & { lateness: Sum; duration: Sum };

/** Adds points up. */
export function sumPoints(points: readonly (Point | undefined)[]): Totals {
  const known = points.filter((point) => point !== undefined);
  const sum = (name: Outcome | "fires" | "failures") => known.reduce((all, point) => all + point[name], 0);
  return {
    fires: sum("fires"),
    succeeded: sum("succeeded"),
    failed: sum("failed"),
    discarded: sum("discarded"),
    expired: sum("expired"),
    cancelled: sum("cancelled"),
    open: sum("open"),
    failures: sum("failures"),
    lateness: sumTimes(known.map((point) => point.lateness)),
    duration: sumTimes(known.map((point) => point.duration)),
  };
}

/** What a share (0 to 1) of times does not exceed, ms, as the node tells it; `null` of none. */
export function percentile({ buckets, count, max_ms: largest }: Sum, bounds: readonly number[], share: number): number | null {
  if (count === 0) return null;
  const rank = Math.min(count, Math.max(1, Math.ceil(share * count)));
  let before = 0;
  for (const [index, here] of buckets.entries()) {
    if (before + here >= rank) {
      const start = index === 0 ? 0 : (bounds[index - 1] ?? 0);
      const end = Math.max(start, Math.min(bounds[index] ?? Number.POSITIVE_INFINITY, largest));
      return start + ((rank - before) / here) * (end - start);
    }
    before += here;
  }
  return null;
}

/** The average, ms; `null` of none. */
export function mean({ count, sum_ms: sum }: Sum): number | null {
  return count === 0 ? null : sum / count;
}

/** The share of runs that ended well, of those that ended by themselves: what was revoked is no failure. */
export function successShare(of: Pick<Totals, "succeeded" | "failed" | "discarded" | "expired">): number | null {
  const ended = of.succeeded + of.failed + of.discarded + of.expired;
  return ended === 0 ? null : of.succeeded / ended;
}

/** A time as charts and tables write it: below ten milliseconds a tenth counts. */
export function millis(ms: number): string {
  return ms < 10 ? `${Number(ms.toFixed(1))} ms` : span(ms);
}
