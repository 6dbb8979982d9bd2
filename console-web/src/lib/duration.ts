/** Spans as one types them: a number and a unit. */

/** Units that a span can be typed in, the smallest first. */
export const UNITS = ["ms", "s", "min", "h", "d"] as const;
export type Unit = (typeof UNITS)[number];

const LENGTH: Record<Unit, number> = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 };

export interface Amount {
  count: number;
  unit: Unit;
}

/** The largest unit in which a span is a whole number; 0 is in `unit`. */
export function amountOf(ms: number, unit: Unit = "s"): Amount {
  if (ms === 0) return { count: 0, unit };
  const largest = UNITS.findLast((each) => ms % LENGTH[each] === 0) ?? "ms";
  return { count: ms / LENGTH[largest], unit: largest };
}

/** In ms, rounded: 1.5 s is 1500. */
export function msOf({ count, unit }: Amount): number {
  return Math.round(count * LENGTH[unit]);
}

export function isUnit(word: string): word is Unit {
  return word in LENGTH;
}
