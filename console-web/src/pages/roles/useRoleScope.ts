import type { Schema } from "../../api/client";
import { useTranslation } from "react-i18next";
import { useTenantNames } from "../../lib/tenantNames";

type Role = Schema<"Role">;

/** Where a role can be granted, in words. */
export function useRoleScope(): (role: Role) => string {
  const { t } = useTranslation("people");
  const { nameOf } = useTenantNames();
  return (role) => (role.tenant_id == null ? t("roles.everywhere") : nameOf(role.tenant_id));
}
