/** Names of tenants and apps where the API names ids. */
import { useMemo } from "react";
import { $api } from "../api/client";
import { useSession } from "../api/session";

/** How many are asked for at once; of those beyond, the id is shown. */
const MOST = 500;

/** The tenants that one may see: their names by id and ids by name. */
export function useTenantNames(): { nameOf: (id: string) => string; idOf: (name: string) => string | undefined; names: string[] } {
  const { me, may } = useSession();
  const query = { params: { query: { limit: MOST } } };
  const { data } = $api.useQuery("get", "/tenants", query, { enabled: may("tenants.read") });
  return useMemo(() => {
    const names = new Map<string, string>();
    for (const held of me.access) if (held.tenant_id != null && held.tenant != null) names.set(held.tenant_id, held.tenant);
    for (const tenant of data?.items ?? []) names.set(tenant.id, tenant.name);
    const ids = new Map([...names].map(([id, name]) => [name, id]));
    return {
      nameOf: (id) => names.get(id) ?? id,
      idOf: (name) => ids.get(name),
      names: [...ids.keys()].sort((a, b) => a.localeCompare(b)),
    };
  }, [me.access, data]);
}

/** The apps that one may see, with names by id; of one tenant when it is named. */
export function useAppNames(tenant?: string): { nameOf: (id: string) => string; apps: { id: string; name: string }[] } {
  const { may } = useSession();
  const { data } = $api.useQuery("get", "/apps", { params: { query: { limit: MOST, tenant } } }, { enabled: may("apps.read") });
  return useMemo(() => {
    const apps = (data?.items ?? []).map(({ id, name }) => ({ id, name }));
    const names = new Map(apps.map(({ id, name }) => [id, name]));
    return { nameOf: (id) => names.get(id) ?? id, apps };
  }, [data]);
}
