/** Buckets of times as bars. */

/** One bar. */
export interface Bar {
  /** The largest time in it, ms; `undefined`: no end. */
  upTo: number | undefined;
  /** What is above this, ms. */
  above: number;
  count: number;
  /** Of all, 0 to 1. */
  share: number;
}

/** Bars from the first bucket that holds something to the last. */
export function barsOf(buckets: readonly number[], bounds: readonly number[]): Bar[] {
  const total = buckets.reduce((sum, count) => sum + count, 0);
  const first = buckets.findIndex((count) => count > 0);
  const last = buckets.findLastIndex((count) => count > 0);
  if (first < 0) return [];
  return buckets.slice(first, last + 1).map((count, offset) => {
    const index = first + offset;
    return { upTo: bounds[index], above: bounds[index - 1] ?? 0, count, share: count / total };
  });
}
