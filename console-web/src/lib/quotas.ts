/** How much of a quota is used. */

/** none: there is no bound. */
export type Fill = "none" | "room" | "nearly" | "full";

/** From this share on a quota is nearly used up. */
const NEARLY = 0.8;

/** 0 is no bound. */
export function fillOf(used: number, bound: number): Fill {
  if (bound === 0) return "none";
  if (used >= bound) return "full";
  return used >= bound * NEARLY ? "nearly" : "room";
}

/** Percent of a bar, 0 to 100; a quota that was made smaller may be overdrawn. */
export function percentOf(used: number, bound: number): number {
  return bound === 0 ? 0 : Math.min(100, Math.round((used / bound) * 100));
}
