/** Reads the list of task logs: once, page by page, and its beginning again whenever something changes. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { $api, client } from "../../api/client";
import { join, limitsOf, MAX_ROWS, orderOf, showsShards, type Beginning, type LogFilters } from "../../lib/logList";
import { clusterNow } from "../../lib/now";
import { BY_BEFORE, itemsOf } from "../../parts/List";

const PAGE = 100;

function queryOf(tenant: string | undefined, filters: LogFilters, now: number) {
  const { status, reason, origin, task, app, executor } = filters;
  // Shards are left to their parents, unless they are looked for.
  const shards = showsShards(filters);
  const order: "newest" | "oldest" = orderOf(filters);
  return { tenant, shards, status, reason, origin, task, app, executor, order, limit: PAGE, ...limitsOf(filters, now) };
}

/**
 * The list, and what is new since. `staysPut` keeps rows where they are: somebody reads further down. What was read once
 * is not read again by itself, however long it has become; only its first page is.
 */
export function useLogList(tenant: string | undefined, filters: LogFilters, staysPut: boolean) {
  const about = JSON.stringify([tenant, filters]);
  const [read, setRead] = useState(() => ({ about, at: clusterNow(), isAgain: false }));
  const [seen, setSeen] = useState<Beginning>();
  if (read.about !== about) {
    setRead({ about, at: clusterNow(), isAgain: false });
    setSeen(undefined);
  }
  const pages = $api.useInfiniteQuery("get", "/task-logs", { params: { query: queryOf(tenant, filters, read.at) } }, {
    ...BY_BEFORE,
    // Neither a live update nor an action reads a hundred pages again.
    staleTime: "static",
    gcTime: 10_000,
    // The same list read again does not go away meanwhile; another one does.
    placeholderData: read.isAgain ? keepPreviousData : undefined,
  });
  const head = useQuery({
    queryKey: ["get", "/task-logs", "beginning", tenant, filters],
    queryFn: async ({ signal }): Promise<Beginning> => {
      const at = clusterNow();
      const { data } = await client.GET("/task-logs", { params: { query: queryOf(tenant, filters, at) }, signal });
      return { at, items: data?.items ?? [], isAll: data?.next == null };
    },
  });
  // At the top one sees the beginning as it is; further down it stays as one has seen it.
  if (!staysPut && seen !== head.data) setSeen(head.data);
  const { data, isPlaceholderData } = pages;
  const joined = useMemo(() => {
    const items = itemsOf({ data });
    if (data === undefined) return join(items, undefined, undefined);
    // A beginning from before the list was read knows less than the list.
    const since = (beginning?: Beginning) => (isPlaceholderData || (beginning?.at ?? 0) >= read.at ? beginning : undefined);
    return join(items, since(seen), since(head.data));
  }, [data, isPlaceholderData, read.at, seen, head.data]);

  const again = (at: number) => setRead({ about, at, isAgain: true });
  // More is new than a page holds: begin anew, unless that would take away what somebody reads.
  const latest = head.data?.at ?? 0;
  if (joined.isApart && !staysPut && !pages.isFetching && latest > read.at) again(latest);

  const isTooLong = joined.items.length >= MAX_ROWS;
  return {
    pages: { ...pages, hasNextPage: pages.hasNextPage && !isTooLong },
    ...joined,
    isTooLong: isTooLong && pages.hasNextPage,
    readAt: Math.max(read.at, seen?.at ?? 0),
    showNewer: () => again(clusterNow()),
  };
}
