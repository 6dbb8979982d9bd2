/** One role: what it allows, and what can be done to it. */
import { Alert, Button, Drawer, Flex, Typography } from "antd";
import { useTranslation } from "react-i18next";
import { $api, client, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { Waiting } from "../../parts/Waiting";
import { heldIn, lacking } from "../../lib/access";
import { useRoleDescription } from "../../lib/described";
import { Confirm } from "../../parts/Confirm";
import { Failure } from "../../parts/Failure";
import { PermissionPicker } from "../../parts/PermissionPicker";
import { useAction } from "../../parts/useAction";
import { useExplained } from "../../parts/useExplained";
import type { RoleDraft } from "./RoleForm";
import { useRoleScope } from "./useRoleScope";

type Role = Schema<"Role">;

interface Properties {
  /** Role's id; absent: closed. */
  id: string | undefined;
  onClose: () => void;
  /** Begins the form of this one, or of one like it. */
  onDraft: (draft: RoleDraft) => void;
  mayCreate: boolean;
}

export function RoleDrawer({ id, onClose, onDraft, mayCreate }: Properties) {
  const { t } = useTranslation("people");
  const role = $api.useQuery("get", "/roles/{id}", { params: { path: { id: id ?? "" } } }, { enabled: id !== undefined });
  const shown = id === undefined ? undefined : role.data;
  return (
    <Drawer open={id !== undefined} onClose={onClose} size={720} title={shown?.name ?? t("users.role")} destroyOnHidden>
      {shown === undefined && role.error === null && <Waiting />}
      {shown === undefined && <Failure error={role.error} again={() => void role.refetch()} />}
      {shown !== undefined && <Shown role={shown} onClose={onClose} onDraft={onDraft} mayCreate={mayCreate} />}
    </Drawer>
  );
}

function Shown({ role, onClose, onDraft, mayCreate }: Omit<Properties, "id"> & { role: Role }) {
  const { t } = useTranslation("people");
  const { me } = useSession();
  const scope = useRoleScope();
  const description = useRoleDescription()(role);
  const lacks = lacking(me.access, role.permissions, { tenantId: role.tenant_id ?? null });
  const isOpen = !role.built_in && lacks.length === 0;
  return (
    <Flex vertical gap="middle">
      {description !== "" && <Typography.Text>{description}</Typography.Text>}
      <Typography.Text type="secondary">{`${t("roles.where")}: ${scope(role)}`}</Typography.Text>
      {role.built_in && <Alert type="info" showIcon title={t("roles.built_in_help")} />}
      {lacks.length > 0 && <Alert type="warning" showIcon title={t("roles.lacking", { count: lacks.length })} description={<span className="mono">{lacks.join(", ")}</span>} />}
      <Flex gap="small" wrap>
        {isOpen && <Changes role={role} onClose={onClose} onDraft={onDraft} />}
        {mayCreate && (
          <Button onClick={() => onDraft({ name: t("roles.copy_name", { name: role.name }), description, permissions: role.permissions })}>{t("roles.copy")}</Button>
        )}
      </Flex>
      <Typography.Title level={2} className="section-title">
        {t("roles.permissions")}
      </Typography.Title>
      <PermissionPicker readOnly value={role.permissions} />
    </Flex>
  );
}

function Changes({ role, onClose, onDraft }: { role: Role; onClose: () => void; onDraft: (draft: RoleDraft) => void }) {
  const { t } = useTranslation("people");
  const common = useTranslation();
  const { me } = useSession();
  const { run } = useAction();
  const failed = useExplained();
  const held = heldIn(me.access, { tenantId: role.tenant_id ?? null });
  const remove = async () => {
    await client.DELETE("/roles/{id}", { params: { path: { id: role.id } } });
    // Before the drawer asks for a role that no longer exists.
    onClose();
  };
  return (
    <>
      {held.has("roles.edit") && (
        <Button type="primary" onClick={() => onDraft(role)}>
          {common.t("edit")}
        </Button>
      )}
      {held.has("roles.delete") && (
        <Confirm label={common.t("delete")} question={t("roles.delete_question", { name: role.name })} consequence={t("roles.delete_text")} onConfirm={() => run(remove, { failed })} />
      )}
    </>
  );
}
