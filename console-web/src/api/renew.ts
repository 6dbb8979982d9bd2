/** Has answers read again: each one at a time, and once more when that was asked for while it was read. */
import type { Query, QueryClient, QueryFilters } from "@tanstack/react-query";

/** A change is shown when its page has been read again, or after so long, ms: a slow node does not hold up what it has done. */
const WAIT_MS = 2_000;

// What is being read when a change is told may have been read before it. It is not given up for another try, though:
// where changes are told faster than the node answers, no try would ever end.
const once = new WeakMap<Query, Promise<void>>();

async function renewOne(queries: QueryClient, query: Query): Promise<void> {
  const underWay = query.state.fetchStatus === "idle" ? undefined : query.promise;
  if (underWay === undefined) return queries.invalidateQueries({ queryKey: query.queryKey, exact: true }, { cancelRefetch: false });
  let again = once.get(query);
  if (again === undefined) {
    const afterIt = async () => {
      once.delete(query);
      return renewOne(queries, query);
    };
    again = underWay.then(afterIt, afterIt);
    once.set(query, again);
  }
  return again;
}

/** Has what these filters name read again: at once where it is shown, else when it is shown next. */
export async function renew(queries: QueryClient, filters?: QueryFilters): Promise<void> {
  await Promise.all(queries.getQueryCache().findAll(filters).map((query) => renewOne(queries, query)));
}

/** Has everything read again after an action, and gives the page the time to show it. */
export async function renewed(queries: QueryClient): Promise<void> {
  const enough = new Promise<void>((resolve) => void setTimeout(resolve, WAIT_MS));
  await Promise.race([renew(queries), enough]);
}
