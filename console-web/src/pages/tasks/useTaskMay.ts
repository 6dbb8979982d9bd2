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

/** Most apps that are asked for; for tasks of those beyond, the node decides. */
const MOST_APPS = 500;

/** The same for tasks of any app. */
export function useTasksMay(): (permission: Permission, task: { tenant: string; app: string }) => boolean {
  const { me, may } = useSession();
  const isBound = me.access.some((held) => held.apps.length > 0);
  const { data } = $api.useQuery("get", "/apps", { params: { query: { limit: MOST_APPS } } }, { enabled: isBound, staleTime: 60_000 });
  return (permission, { tenant, app }) => {
    if (!isBound || mayWhole(me.access, permission, tenant)) return may(permission, { tenant });
    const id = data?.items.find((each) => each.tenant === tenant && each.name === app)?.id;
    return id === undefined ? data?.next != null && may(permission, { tenant }) : may(permission, { tenant, app: id });
  };
}
