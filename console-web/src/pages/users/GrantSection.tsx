/** What a user is granted: each grant, and how to give and take one. */
import { Button, Flex, Tag, Tooltip, Typography, type TableProps } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { client, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { heldIn } from "../../lib/access";
import { useLink } from "../../lib/tenant";
import { useAppNames } from "../../lib/tenantNames";
import { Confirm } from "../../parts/Confirm";
import { useAction } from "../../parts/useAction";
import { useExplained } from "../../parts/useExplained";
import { GrantForm } from "./GrantForm";
import { useScopeName } from "./Grants";
import { DataTable } from "../../parts/DataTable";

type User = Schema<"User">;
type Grant = Schema<"Grant">;

function Take({ user, grant }: { user: User; grant: Grant }) {
  const { t } = useTranslation("people");
  const { me } = useSession();
  const { run } = useAction();
  const failed = useExplained();
  const held = heldIn(me.access, { tenantId: grant.tenant_id ?? null, apps: grant.apps });
  if (grant.from_group) {
    return (
      <Tooltip title={t("users.from_group_help")}>
        <Tag tabIndex={0}>{t("users.from_group")}</Tag>
      </Tooltip>
    );
  }
  if (!held.has("grants.delete")) return null;
  const params = { path: { id: user.id, grant: grant.id } };
  return (
    <Confirm
      danger={false}
      label={t("users.take")}
      question={t("users.take_question", { role: grant.role, name: user.name })}
      consequence={t("users.take_text")}
      button={{ size: "small" }}
      onConfirm={() => run(() => client.DELETE("/users/{id}/grants/{grant}", { params }), { failed })}
    />
  );
}

export function GrantSection({ user }: { user: User }) {
  const { t } = useTranslation("people");
  const common = useTranslation();
  const { may } = useSession();
  const link = useLink();
  const scopeName = useScopeName();
  const { nameOf } = useAppNames();
  const [granting, setGranting] = useState(false);
  const role = (grant: Grant) => (may("roles.read") ? <Link to={link("/roles", { role: grant.role_id })}>{grant.role}</Link> : grant.role);
  const columns: TableProps<Grant>["columns"] = [
    { title: t("users.role"), key: "role", render: (_, grant) => role(grant) },
    { title: t("users.where"), key: "where", render: (_, grant) => scopeName(grant.tenant_id) },
    { title: t("users.apps"), key: "apps", render: (_, { apps }) => (apps.length === 0 ? t("users.all_apps") : apps.map(nameOf).join(", ")) },
    { title: common.t("actions"), key: "take", render: (_, grant) => <Take user={user} grant={grant} /> },
  ];
  return (
    <section aria-label={t("users.grants")}>
      <Flex vertical gap="small">
        <Flex justify="space-between" align="center" gap="small" wrap>
          <Typography.Title level={2} className="section-title">
            {t("users.grants")}
          </Typography.Title>
          {may("grants.create") && (
            <Button type={user.grants.length === 0 ? "primary" : "default"} onClick={() => setGranting(true)}>
              {t("users.grant")}
            </Button>
          )}
        </Flex>
        <DataTable<Grant>
          size="middle"
          rowKey={({ id }) => id}
          columns={columns}
          dataSource={user.grants}
          pagination={false}
          scroll={{ x: "max-content" }}
          locale={{ emptyText: t("users.next_grant") }}
        />
      </Flex>
      <GrantForm open={granting} user={user} onClose={() => setGranting(false)} />
    </section>
  );
}
