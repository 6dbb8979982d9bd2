/** What fires in the coming three minutes. */
import { useMemo } from "react";
import { $api } from "../../api/client";
import { inOrder, type Coming } from "../../lib/coming";

export function useComing(tenant: string | undefined): { coming: Coming | undefined; error: unknown; again: () => void } {
  const { data, error, refetch } = $api.useQuery("get", "/fires/coming", { params: { query: { tenant } } }, { placeholderData: (last) => last });
  const coming = useMemo((): Coming | undefined => {
    if (data === undefined) return undefined;
    const lanes = data.tasks.map(({ task, name, tenant: owner, fires, next }) => ({ task, name: name ?? task, tenant: owner ?? "", fires, next }));
    return { at: data.at, lanes: inOrder(lanes), seconds: data.seconds, moreTasks: data.more_tasks, isComplete: data.complete };
  }, [data]);
  return { coming, error, again: () => void refetch() };
}
