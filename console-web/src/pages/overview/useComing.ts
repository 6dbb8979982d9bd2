/** What fires in the coming three minutes. */
import { useMemo } from "react";
import { $api } from "../../api/client";
import { AHEAD_MS, BEHIND_MS, comingOf, type Coming } from "../../lib/coming";
import { useNow } from "../../lib/now";
import { useTaskNames } from "./useTaskNames";

/** How long one question stays the same, ms. */
const SLOT_MS = 15_000;
const MOST = 500;

export function useComing(tenant: string | undefined): { coming: Coming | undefined; error: unknown; again: () => void } {
  const now = useNow(SLOT_MS);
  const nameOf = useTaskNames(tenant);
  const from = Math.floor(now / SLOT_MS) * SLOT_MS;
  const query = { tenant, from: from - BEHIND_MS, until: from + AHEAD_MS, order: "oldest" as const, limit: MOST };
  const { data, error, refetch } = $api.useQuery("get", "/task-logs", { params: { query } }, { placeholderData: (last) => last });
  const coming = useMemo(() => (data === undefined ? undefined : comingOf(data.items, from, data.next == null, nameOf)), [data, from, nameOf]);
  return { coming, error, again: () => void refetch() };
}
