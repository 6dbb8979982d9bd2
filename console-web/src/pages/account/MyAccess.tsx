/** What I may do, by place. */
import { Alert, Collapse } from "antd";
import { useTranslation } from "react-i18next";
import type { Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { useAppNames } from "../../lib/tenantNames";
import { PermissionPicker } from "../../parts/PermissionPicker";

export function MyAccess() {
  const { t } = useTranslation("people");
  const { me } = useSession();
  const { nameOf } = useAppNames();
  if (me.access.length === 0) return <Alert type="warning" showIcon title={t("account.nothing")} />;
  const scope = ({ tenant, tenant_id, apps }: Schema<"Held">) => {
    if (tenant_id == null) return t("account.place_all");
    const name = tenant ?? tenant_id;
    return apps.length === 0 ? t("account.place_tenant", { tenant: name }) : t("account.place_apps", { tenant: name, apps: apps.map(nameOf).join(", ") });
  };
  const items = me.access.map((held, index) => ({
    key: String(index),
    label: scope(held),
    extra: t("account.permissions", { count: held.permissions.length }),
    children: <PermissionPicker readOnly value={held.permissions} />,
  }));
  return <Collapse items={items} defaultActiveKey={["0"]} />;
}
