/** Bounds how many calls go on at once: a list of a thousand rows must not ask a thousand things together. */

/** `take(work)` does `work` as soon as fewer than `most` others go on; in the order in which they came. */
export function turns(most: number): <Answer>(work: () => Promise<Answer>) => Promise<Answer> {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (running < most) running += 1;
    // One that ends hands on its slot, so `running` stays as it is.
    else await new Promise<void>((go) => waiting.push(go));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
