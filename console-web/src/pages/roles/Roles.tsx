import { Button, Flex, Segmented, Typography, type TableProps } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { $api, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { useRoleDescription } from "../../lib/described";
import { useFilters } from "../../lib/search";
import { useLink, useTenant } from "../../lib/tenant";
import { useTenantNames } from "../../lib/tenantNames";
import { BY_AFTER, itemsOf, List } from "../../parts/List";
import { Page } from "../../parts/Page";
import { Word } from "../../parts/Tags";
import { RoleDrawer } from "./RoleDrawer";
import { RoleForm, type RoleDraft } from "./RoleForm";
import { RoleMatrix } from "./RoleMatrix";
import { useRoleScope } from "./useRoleScope";

type Role = Schema<"Role">;

function NameOf({ role }: { role: Role }) {
  const { t } = useTranslation("people");
  const link = useLink();
  return (
    <Flex gap="small" align="center" wrap>
      <Link to={link("/roles", { role: role.id })}>{role.name}</Link>
      {role.built_in && <Word tone="idle">{t("roles.built_in")}</Word>}
    </Flex>
  );
}

function useColumns(): NonNullable<TableProps<Role>["columns"]> {
  const { t } = useTranslation("people");
  const common = useTranslation();
  const { me } = useSession();
  const scope = useRoleScope();
  const description = useRoleDescription();
  return [
    { title: common.t("name"), key: "name", width: 240, render: (_, role) => <NameOf role={role} /> },
    { title: common.t("description"), key: "description", width: 320, render: (_, role) => description(role) },
    { title: t("roles.where"), key: "where", width: 200, render: (_, role) => scope(role) },
    {
      title: t("roles.permissions"),
      key: "permissions",
      width: 130,
      render: (_, role) => <span className="number">{t("roles.count", { count: role.permissions.length, all: me.permissions.length })}</span>,
    },
  ];
}

export default function Roles() {
  const { t } = useTranslation("people");
  const common = useTranslation();
  const { mayWhole } = useSession();
  const { tenant } = useTenant();
  const { idOf } = useTenantNames();
  const { filters, set } = useFilters(["role", "view"]);
  const [draft, setDraft] = useState<RoleDraft>();
  const columns = useColumns();
  const description = useRoleDescription();
  const pages = $api.useInfiniteQuery("get", "/roles", { params: { query: { limit: 200 } } }, BY_AFTER);
  const tenantId = tenant === undefined ? undefined : idOf(tenant);
  const roles = itemsOf(pages).filter((role) => tenantId === undefined || role.tenant_id == null || role.tenant_id === tenantId);
  const mayCreate = mayWhole("roles.create", tenant);
  const create = mayCreate && (
    <Button type="primary" onClick={() => setDraft({ name: "", description: "", permissions: [] })}>
      {t("roles.create")}
    </Button>
  );
  return (
    <Page title={common.t("pages.roles")} subtitle={t("roles.about")} actions={create}>
      <Segmented
        className="segments"
        value={filters.view ?? "list"}
        onChange={(view) => set({ view: view === "list" ? undefined : view })}
        options={[
          { value: "list", label: t("roles.list") },
          { value: "matrix", label: t("roles.matrix") },
        ]}
      />
      {filters.view === "matrix" ? (
        <RoleMatrix roles={roles} />
      ) : (
        <List<Role>
          label={common.t("pages.roles")}
          pages={pages}
          items={roles}
          rowKey={({ id }) => id}
          columns={columns}
          card={(role) => (
            <Flex vertical gap="small">
              <NameOf role={role} />
              <Typography.Text type="secondary">{description(role)}</Typography.Text>
            </Flex>
          )}
        />
      )}
      <RoleDrawer id={filters.role} onClose={() => set({ role: undefined })} onDraft={setDraft} mayCreate={mayCreate} />
      <RoleForm draft={draft} onClose={() => setDraft(undefined)} />
    </Page>
  );
}
