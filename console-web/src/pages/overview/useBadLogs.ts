/** The newest runs of the last day that ended in some bad state. */
import { $api } from "../../api/client";
import { useSession } from "../../api/session";
import { useNow } from "../../lib/now";
import { ofSame } from "../../lib/placeholder";

/** Newest logs of each state that are looked at. */
const LOOK = 200;
const DAY_MS = 86_400_000;
const SLOT_MS = 600_000;

export function useBadLogs(tenant: string | undefined, status: "failed" | "discarded" | "expired") {
  const now = useNow(60_000);
  const { may } = useSession();
  // The same question for a while: the stream of events has it asked again.
  const from = Math.floor(now / SLOT_MS) * SLOT_MS - DAY_MS;
  const enabled = may("task_logs.read", { tenant });
  const { data, error, refetch } = $api.useQuery("get", "/task-logs", { params: { query: { tenant, status, from, limit: LOOK } } }, { placeholderData: ofSame({ tenant }), enabled });
  return { logs: data?.items, isKnown: !enabled || data !== undefined, isFull: data?.next != null, error, refetch };
}
