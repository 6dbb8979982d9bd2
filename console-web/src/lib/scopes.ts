/** The scopes in which an action is allowed, for the choice of one in a form. */
import type { Permission } from "../api/permissions";
import { useSession } from "../api/session";
import { useTenant } from "./tenant";
import { useTenantNames } from "./tenantNames";

/** Stands for the platform where a form's field needs a text; no tenant can be named so. */
export const PLATFORM = "-";

interface Scopes {
  /** Names of tenants. */
  tenants: string[];
  /** Whether also on the platform. */
  platform: boolean;
  /** What a form begins with: the chosen tenant, else the only or first one. */
  first: string;
}

/** The places where one holds the permission; `whole`: not only in some apps. */
export function useScopes(permission: Permission, whole: boolean): Scopes {
  const { may, mayWhole } = useSession();
  const { tenant } = useTenant();
  const { names } = useTenantNames();
  const tenants = names.filter((name) => (whole ? mayWhole(permission, name) : may(permission, { tenant: name })));
  const platform = may(permission, { tenant: null });
  const chosen = tenant !== undefined && tenants.includes(tenant) ? tenant : undefined;
  return { tenants, platform, first: chosen ?? (platform ? PLATFORM : (tenants[0] ?? "")) };
}

/** What the API takes for it: a tenant's name, or none. */
export function tenantOf(scope: string): string | null {
  return scope === PLATFORM ? null : scope;
}
