/** Names of tasks, where an answer has their ids only. */
import { useCallback, useMemo } from "react";
import { $api } from "../../api/client";
import { useSession } from "../../api/session";

/** Gives a task's name; its id where the name is not known. */
export function useTaskNames(tenant: string | undefined): (task: string) => string {
  const { may } = useSession();
  const { data } = $api.useQuery("get", "/tasks", { params: { query: { tenant, limit: 500 } } }, { enabled: may("tasks.read", { tenant }) });
  const names = useMemo(() => new Map(data?.items.map((task) => [task.id, task.name])), [data]);
  return useCallback((task) => names.get(task) ?? task, [names]);
}
