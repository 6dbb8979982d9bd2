/** For pages that show one tenant's things: where none is chosen, it is chosen first. */
import { Button, Empty, Flex } from "antd";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { $api } from "../api/client";
import type { Permission } from "../api/permissions";
import { tenantsOf, useSession } from "../api/session";
import { useTenant } from "../lib/tenant";

/** Names of the tenants in which one may do something, in order; at most 500 where one sees the whole platform. */
export function useTenantNames(permission: Permission): string[] {
  const { me, may } = useSession();
  const seesAll = me.access.some((held) => held.tenant_id == null) && may("tenants.read", { tenant: null });
  const all = $api.useQuery("get", "/tenants", { params: { query: { limit: 500 } } }, { enabled: seesAll });
  const known = new Set([...tenantsOf(me.access), ...(all.data?.items.map((item) => item.name) ?? [])]);
  return [...known].filter((tenant) => may(permission, { tenant })).sort((a, b) => a.localeCompare(b));
}

interface Properties {
  /** Why a tenant is needed here. */
  why: string;
  /** Only tenants in which one may do this. */
  permission: Permission;
  children: (tenant: string) => ReactNode;
}

export function TenantFirst({ why, permission, children }: Properties) {
  const { tenant } = useTenant();
  return tenant === undefined ? <Choice why={why} permission={permission} /> : children(tenant);
}

function Choice({ why, permission }: Pick<Properties, "why" | "permission">) {
  const { t } = useTranslation();
  const { choose } = useTenant();
  const names = useTenantNames(permission);
  return (
    <Empty image={Empty.PRESENTED_IMAGE_SIMPLE} description={why}>
      <Flex gap="small" wrap justify="center" role="group" aria-label={t("tenant")}>
        {names.map((name) => (
          <Button key={name} onClick={() => choose(name)}>
            {name}
          </Button>
        ))}
      </Flex>
    </Empty>
  );
}
