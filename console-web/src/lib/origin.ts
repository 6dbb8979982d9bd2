/** Where a task was imported from, if it was. */
import { $api, type Schema } from "../api/client";
import { useSession } from "../api/session";
import { before } from "./imports";

/** Its origin, and its number with it, if that is wanted; those of a tenant are for who may read all of its tasks. */
export function useOrigin(tenant: string, task: string, isWanted = true): Schema<"TaskOrigin"> | undefined {
  const { mayWhole } = useSession();
  const { data } = $api.useQuery(
    "get",
    "/tenants/{tenant}/origins",
    { params: { path: { tenant }, query: { after: before(task), limit: 1 } } },
    { enabled: isWanted && mayWhole("tasks.read", tenant) },
  );
  return data?.items.find((origin) => origin.task === task);
}
