/** Finding users in a list: the API knows exact names only. */
import type { Schema } from "../api/client";

type User = Schema<"User">;

/** Whether the account belongs to the tenant, or holds something there; on the platform one holds everything everywhere. */
export function touches(user: User, tenantId: string): boolean {
  return user.tenant_id === tenantId || user.grants.some(({ tenant_id }) => tenant_id == null || tenant_id === tenantId);
}

/** Whether a user's names hold the text, and, with a tenant, whether he touches it. */
export function matchesUser(user: User, search: string, tenantId?: string): boolean {
  const wanted = search.trim().toLowerCase();
  const isNamed = user.name.toLowerCase().includes(wanted) || user.display_name.toLowerCase().includes(wanted);
  return isNamed && (tenantId === undefined || touches(user, tenantId));
}
