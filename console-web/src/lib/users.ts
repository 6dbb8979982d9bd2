/** Which tenants a user has to do with: the API does not narrow its list by them. */
import type { Schema } from "../api/client";

type User = Schema<"User">;

/** Whether the account belongs to the tenant, or holds something there; on the platform one holds everything everywhere. */
export function touches(user: User, tenantId: string): boolean {
  return user.tenant_id === tenantId || user.grants.some(({ tenant_id }) => tenant_id == null || tenant_id === tenantId);
}
