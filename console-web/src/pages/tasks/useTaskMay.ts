/** What may be done with a task. A grant can be bound to some apps by id; a task knows its app by name. */
import { $api } from "../../api/client";
import type { Permission } from "../../api/permissions";
import { mayWhole, useSession } from "../../api/session";

/** Says whether something may be done with the tasks of that app. */
export function useTaskMay(tenant: string, app: string): (permission: Permission) => boolean {
  const { me, may } = useSession();
  const isBound = me.access.some((held) => held.tenant === tenant && held.apps.length > 0);
  const { data } = $api.useQuery("get", "/apps", { params: { query: { tenant, name: app, limit: 1 } } }, { enabled: isBound, staleTime: 60_000 });
  const id = data?.items[0]?.id;
  return (permission) => {
    if (!isBound || mayWhole(me.access, permission, tenant)) return may(permission, { tenant });
    return id !== undefined && may(permission, { tenant, app: id });
  };
}
