/** The same for many things: a few at a time, and one that fails stops none of the others. */

/** How many are asked for at once. */
export const AT_ONCE = 4;

export type Outcome<Item> = { item: Item; isDone: true } | { item: Item; isDone: false; error: unknown };

/** Does `each` for all items, `AT_ONCE` at a time, and tells how each went, in their order. */
export async function forAll<Item>(
  items: readonly Item[],
  each: (item: Item) => Promise<unknown>,
  /** Called after each, with how many are behind. */
  progress: (behind: number) => void = () => undefined,
): Promise<Outcome<Item>[]> {
  const outcomes: Outcome<Item>[] = [];
  const rest = items.entries();
  let behind = 0;
  const work = async () => {
    // All workers take from the same rest.
    for (const [index, item] of rest) {
      try {
        await each(item);
        outcomes[index] = { item, isDone: true };
      } catch (error) {
        outcomes[index] = { item, isDone: false, error };
      }
      behind += 1;
      progress(behind);
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, work));
  return outcomes;
}
