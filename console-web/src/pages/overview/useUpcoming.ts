/** What fires in the coming three minutes. */
import { useMemo } from "react";
import { $api } from "../../api/client";
import { useSession } from "../../api/session";
import { inOrder, type Upcoming } from "../../lib/upcoming";
import { ofSame } from "../../lib/placeholder";

/** Runs are written ahead without a change of what is due: they are asked for, ms. */
const WRITTEN_MS = 10_000;

export function useUpcoming(tenant: string | undefined): { upcoming: Upcoming | undefined; isKnown: boolean; error: unknown; again: () => void } {
  const { may } = useSession();
  const enabled = may("task_logs.read", { tenant });
  const { data, error, refetch } = $api.useQuery("get", "/fires/upcoming", { params: { query: { tenant } } }, { enabled, placeholderData: ofSame({ tenant }), refetchInterval: WRITTEN_MS });
  const upcoming = useMemo((): Upcoming | undefined => {
    if (data === undefined) return undefined;
    const lanes = data.tasks.map(({ task, name, tenant: owner, fires, next }) => ({ task, name: name ?? task, tenant: owner ?? "", fires, next }));
    return { at: data.at, lanes: inOrder(lanes), seconds: data.seconds, moreTasks: data.more_tasks, isComplete: data.complete };
  }, [data]);
  return { upcoming, isKnown: !enabled || upcoming !== undefined, error, again: () => void refetch() };
}
