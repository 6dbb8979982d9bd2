/** The tasks that the list shows. */
import { $api, type QueryOf } from "../../api/client";
import { BY_AFTER, nearTop } from "../../parts/List";
import { useSettled } from "../../parts/useSettled";

/** What the list can be narrowed by. */
export interface TaskFilters {
  tenant?: string;
  app?: string;
  state?: QueryOf<"list_tasks">["state"];
  /** A part of the name, or of the handler's. */
  search?: string;
}

const PAGE = 100;

/** How often the next fires are asked for again, ms. */
const NEXT_FIRES_MS = 15_000;

/** Between the last key and the question, ms. */
const SETTLED_MS = 250;

export function useTasks({ tenant, app, state, search }: TaskFilters) {
  const part = useSettled(search?.trim(), SETTLED_MS);
  const query = { tenant, app, state, search: part === "" ? undefined : part, limit: PAGE };
  return $api.useInfiniteQuery("get", "/tasks", { params: { query } }, {
    ...BY_AFTER,
    // Next fires pass without a change of any task.
    refetchInterval: nearTop(NEXT_FIRES_MS),
  });
}
