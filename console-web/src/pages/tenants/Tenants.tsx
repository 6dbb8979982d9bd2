import { Button, Flex, Typography, type TableProps } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { $api, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { useLink } from "../../lib/tenant";
import { BY_AFTER, List } from "../../parts/List";
import { Moment } from "../../parts/Moment";
import { Page } from "../../parts/Page";
import { TenantActions } from "./TenantActions";
import { CreateTenant, EditTenant } from "./TenantForms";

type Tenant = Schema<"Tenant">;

function Described({ tenant }: { tenant: Tenant }) {
  const { t } = useTranslation("admin");
  if (tenant.description === "") return <Typography.Text type="secondary">{t("tenants.no_description")}</Typography.Text>;
  return <>{tenant.description}</>;
}

export default function Tenants() {
  const { t } = useTranslation("admin");
  const common = useTranslation();
  const { may } = useSession();
  const link = useLink();
  const [creating, setCreating] = useState(false);
  const [edited, setEdited] = useState<Tenant>();
  const pages = $api.useInfiniteQuery("get", "/tenants", { params: { query: { limit: 100 } } }, BY_AFTER);
  const name = (tenant: Tenant) => <Link to={link("/tasks", { tenant: tenant.name })}>{tenant.name}</Link>;
  const columns: NonNullable<TableProps<Tenant>["columns"]> = [
    { title: common.t("name"), key: "name", width: 200, render: (_, tenant) => name(tenant) },
    { title: common.t("description"), key: "description", width: 320, render: (_, tenant) => <Described tenant={tenant} /> },
    { title: common.t("created_at"), key: "created", width: 180, render: (_, tenant) => <Moment at={tenant.created_at} /> },
    { title: common.t("actions"), key: "actions", width: 320, render: (_, tenant) => <TenantActions tenant={tenant} onEdit={() => setEdited(tenant)} /> },
  ];
  const create = may("tenants.create", { tenant: null }) && (
    <Button type="primary" onClick={() => setCreating(true)}>
      {t("tenants.create")}
    </Button>
  );
  return (
    <Page title={common.t("pages.tenants")} subtitle={t("tenants.about")} actions={create}>
      <List<Tenant>
        label={common.t("pages.tenants")}
        pages={pages}
        rowKey={({ id }) => id}
        columns={columns}
        whenEmpty={t("tenants.empty")}
        card={(tenant) => (
          <Flex vertical gap="small">
            <strong>{name(tenant)}</strong>
            <Described tenant={tenant} />
            <TenantActions tenant={tenant} onEdit={() => setEdited(tenant)} />
          </Flex>
        )}
      />
      <CreateTenant open={creating} onClose={() => setCreating(false)} />
      <EditTenant tenant={edited} onClose={() => setEdited(undefined)} />
    </Page>
  );
}
