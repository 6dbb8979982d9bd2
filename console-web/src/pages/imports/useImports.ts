/** The imported tasks of a tenant, each with its app and state: two lists by id, read beside each other. */
import { useEffect } from "react";
import { $api } from "../../api/client";
import { before, isBefore, joined, type Imported } from "../../lib/imports";
import { BY_AFTER, itemsOf, type Pages } from "../../parts/List";

const PAGE = 500;

/** Most pages of each that are read: 10,000 imported tasks, among as many others. */
const ORIGIN_PAGES = 20;
const TASK_PAGES = 40;

export interface Imports {
  imported: Imported[];
  /** Whether all that will be read is there. */
  isWhole: boolean;
  /** Whether there are more than are read. */
  isCut: boolean;
  /** As a list shows them. */
  pages: Pages<Imported>;
}

export function useImports(tenant: string): Imports {
  const origins = $api.useInfiniteQuery("get", "/tenants/{tenant}/origins", { params: { path: { tenant }, query: { limit: PAGE } } }, BY_AFTER);
  const marks = itemsOf(origins);
  const [first, last] = [marks[0]?.task, marks.at(-1)?.task];
  const tasks = $api.useInfiniteQuery("get", "/tasks", { params: { query: { tenant, limit: PAGE } } }, {
    ...BY_AFTER,
    // Tasks from before the first import need not be looked through.
    initialPageParam: first === undefined ? null : before(first),
    enabled: first !== undefined,
  });
  const known = itemsOf(tasks);
  const reached = known.at(-1)?.id;
  const moreOrigins = origins.hasNextPage && (origins.data?.pages.length ?? 0) < ORIGIN_PAGES;
  const isBehind = tasks.hasNextPage && last !== undefined && (reached === undefined || isBefore(reached, last));
  const moreTasks = isBehind && (tasks.data?.pages.length ?? 0) < TASK_PAGES;
  useReadingOn(origins, moreOrigins);
  useReadingOn(tasks, moreTasks);
  const imported = joined(marks, known);
  const error: unknown = origins.error ?? tasks.error;
  const hasFailed = error !== null && error !== undefined;
  const isWhole = origins.data !== undefined && (first === undefined || tasks.data !== undefined) && !moreOrigins && !moreTasks;
  const pages: Pages<Imported> = {
    data: origins.data === undefined ? undefined : { pages: [{ items: imported }] },
    error,
    isPending: !isWhole && !hasFailed,
    isFetching: false,
    isFetchingNextPage: false,
    isFetchNextPageError: false,
    hasNextPage: false,
    fetchNextPage: () => Promise.resolve(),
    refetch: () => Promise.all([origins.refetch(), ...(first === undefined ? [] : [tasks.refetch()])]),
  };
  return { imported, isWhole, isCut: isWhole && (origins.hasNextPage || isBehind), pages };
}

/** Reads the next page as long as more is wanted. A page that fails is read again when a person asks for it. */
function useReadingOn({ isFetching, isFetchNextPageError, fetchNextPage }: Pick<Pages<object>, "isFetching" | "isFetchNextPageError" | "fetchNextPage">, isWanted: boolean): void {
  useEffect(() => {
    if (isWanted && !isFetching && !isFetchNextPageError) void fetchNextPage();
  }, [isWanted, isFetching, isFetchNextPageError, fetchNextPage]);
}
