/** Reads the list of task logs: once, page by page, and its beginning again whenever something changes. */
import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { client, type QueryOf } from "../../api/client";
import { join, limitsOf, MAX_ROWS, orderOf, rangeOf, showsShards, type Beginning, type LogFilters } from "../../lib/logList";
import { clusterNow } from "../../lib/now";
import { BY_BEFORE, itemsOf } from "../../parts/List";

const PAGE = 100;

/** Runs come due without a change: they are asked for, ms. */
const COME_DUE_MS = 5_000;

/** A moment in the life of the page, ms: what was asked for first. The clocks of viewer and cluster may jump. */
const moment = () => performance.now();

/** Restarts a list. `at`: now, cluster time, to which it reaches. */
const begun = (about: string, isAgain: boolean) => ({ about, at: clusterNow(), since: moment(), isAgain });

function queryOf(tenant: string | undefined, filters: LogFilters, now: number): QueryOf<"list_task_logs"> {
  const { task, app, executor } = filters;
  // Words of the address: the node refuses those that it does not know, and says which it does.
  const words = filters as Pick<QueryOf<"list_task_logs">, "status" | "reason" | "trigger">;
  const { status, reason, trigger } = words;
  // Shards are left to their parents, unless they are looked for.
  const shards = showsShards(filters);
  const order = orderOf(filters);
  return { tenant, shards, status, reason, trigger, task, app, executor, order, limit: PAGE, ...limitsOf(filters, now) };
}

/**
 * The list, and what is new since. `staysPut` keeps rows where they are: the user reads further down. What was read once
 * is not read again by itself, however long it has become; only its first page is.
 */
export function useLogList(tenant: string | undefined, filters: LogFilters, staysPut: boolean) {
  const about = JSON.stringify([tenant, filters]);
  const [read, setRead] = useState(() => begun(about, false));
  const [seen, setSeen] = useState<Beginning>();
  if (read.about !== about) {
    setRead(begun(about, false));
    setSeen(undefined);
  }
  const pages = useInfiniteQuery({
    // Restarted, it is another list, whether or not its limits move with the time.
    queryKey: ["get", "/task-logs", "list", tenant, filters, read.since],
    queryFn: async ({ pageParam, signal }) => {
      const { data } = await client.GET("/task-logs", { params: { query: { ...queryOf(tenant, filters, read.at), before: pageParam ?? undefined } }, signal });
      return { items: data?.items ?? [], next: data?.next };
    },
    initialPageParam: BY_BEFORE.initialPageParam,
    getNextPageParam: BY_BEFORE.getNextPageParam,
    // Neither a live update nor an action reads a hundred pages again.
    staleTime: "static",
    gcTime: 10_000,
    // The same list read again does not go away meanwhile; another one does.
    placeholderData: read.isAgain ? keepPreviousData : undefined,
  });
  const head = useQuery({
    queryKey: ["get", "/task-logs", "beginning", tenant, filters],
    queryFn: async ({ signal }): Promise<Beginning> => {
      const [at, since] = [clusterNow(), moment()];
      const { data } = await client.GET("/task-logs", { params: { query: queryOf(tenant, filters, at) }, signal });
      return { at, since, items: data?.items ?? [], isAll: data?.next == null };
    },
    refetchInterval: rangeOf(filters) === undefined ? false : COME_DUE_MS,
  });
  // At the top one sees the beginning as it is; further down it stays as one has seen it.
  if (!staysPut && seen !== head.data) setSeen(head.data);
  const { data, hasNextPage, isPlaceholderData } = pages;
  const joined = useMemo(() => {
    const rows = { items: itemsOf({ data }), isAll: !hasNextPage };
    if (data === undefined) return join(rows, undefined, undefined);
    // A beginning from before the list was read knows less than the list.
    const notOlder = (beginning?: Beginning) => (isPlaceholderData || (beginning?.since ?? 0) >= read.since ? beginning : undefined);
    return join(rows, notOlder(seen), notOlder(head.data));
  }, [data, hasNextPage, isPlaceholderData, read.since, seen, head.data]);

  const again = () => setRead(begun(about, true));
  // There is more new than fits a page: restart, unless that would remove what the user reads.
  if (joined.isApart && !staysPut && !pages.isFetching && (head.data?.since ?? 0) > read.since) again();

  const isTooLong = joined.items.length >= MAX_ROWS;
  return {
    // What is new could not be read: neither is the list what it shows any more.
    pages: { ...pages, error: pages.error ?? head.error, refetch: pages.error === null ? head.refetch : pages.refetch, hasNextPage: pages.hasNextPage && !isTooLong },
    ...joined,
    isTooLong: isTooLong && pages.hasNextPage,
    readAt: Math.max(read.at, seen?.at ?? 0),
    showNewer: again,
  };
}
