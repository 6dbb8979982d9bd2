/** Grants as tags: which role, where, in which apps. */
import { Flex, Tag, Typography } from "antd";
import { useTranslation } from "react-i18next";
import type { Schema } from "../../api/client";
import { useAppNames, useTenantNames } from "../../lib/tenantNames";

type Grant = Schema<"Grant">;

/** The name of a place: a tenant's, or the platform. */
export function useScopeName(): (tenantId: string | null | undefined) => string {
  const { t } = useTranslation("people");
  const { nameOf } = useTenantNames();
  return (tenantId) => (tenantId == null ? t("users.on_platform") : nameOf(tenantId));
}

export function GrantTags({ grants }: { grants: readonly Grant[] }) {
  const { t } = useTranslation("people");
  const scopeName = useScopeName();
  const { nameOf } = useAppNames();
  if (grants.length === 0) return <Typography.Text type="secondary">{t("users.grant_none")}</Typography.Text>;
  return (
    <Flex gap={4} wrap>
      {grants.map(({ id, role, tenant_id, apps }) => {
        const scope = scopeName(tenant_id);
        const words = apps.length === 0 ? t("users.in_scope", { role, scope }) : t("users.in_apps", { role, scope, apps: apps.map(nameOf).join(", ") });
        return <Tag key={id}>{words}</Tag>;
      })}
    </Flex>
  );
}
