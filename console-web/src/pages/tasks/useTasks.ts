/** The tasks that the list shows. */
import { $api, type Schema } from "../../api/client";
import { matches, type TaskFilter } from "../../lib/taskFilter";
import { BY_AFTER, itemsOf } from "../../parts/List";

/** What the list can be narrowed by. */
export interface TaskFilters extends TaskFilter {
  tenant?: string;
  app?: string;
  state?: string;
}

/** A page; a large one where most of it may not match. */
const PAGE = 100;
const PAGE_FILTERED = 500;

/** How often the next fires are asked for again, ms. */
const NEXT_FIRES_MS = 15_000;

/** The node narrows by tenant, app and state; parts of names are looked for here, and more is read until the list is filled. */
export function useTasks({ tenant, app, state, ...rest }: TaskFilters) {
  const isLooking = Object.keys(rest).length > 0;
  const query = { tenant, app, state, limit: isLooking ? PAGE_FILTERED : PAGE };
  const pages = $api.useInfiniteQuery("get", "/tasks", { params: { query } }, {
    ...BY_AFTER,
    // Next fires pass without a change of any task. Who has scrolled far reads the list, not the clock.
    refetchInterval: ({ state: { data } }) => (data !== undefined && data.pages.length <= 2 ? NEXT_FIRES_MS : false),
  });
  const read = itemsOf(pages);
  const items: Schema<"Task">[] = isLooking ? read.filter((task) => matches(task, rest)) : read;
  return { pages, items };
}
