/** How long a lost stream waits before another try. */

/** Nothing heard for this long means that the stream is dead, ms; the node says hello every 10 s. */
export const SILENCE_MS = 25_000;

/** Heartbeats and load of executors and nodes are no changes: they are asked for, ms. */
export const HEARTBEATS_MS = 10_000;

/** First pause before another try, ms; it doubles with each failure. */
export const PAUSE_MIN_MS = 1_000;

/** Longest pause, ms. */
export const PAUSE_MAX_MS = 30_000;

/**
 * How long to wait after so many failures in a row. `random` (0 to 1) spreads it over its second
 * half, so that the pages of a whole company do not come back in one instant.
 */
export function backOff(failures: number, random: number): number {
  const pause = Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** Math.min(failures, 10));
  return Math.round(pause / 2 + (pause / 2) * random);
}

/** A stream that has stood so long since its first word was a good one, ms. */
export const STEADY_MS = 3_000;

/** Failures in a row, this one included, when a stream is lost that stood for `stood` ms after so many failures. */
export function failuresWith(failures: number, stood: number): number {
  return stood >= STEADY_MS ? 1 : failures + 1;
}
