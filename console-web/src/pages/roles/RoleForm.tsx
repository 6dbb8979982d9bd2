/** The form of a role, new or known; what one does not hold oneself is not to be chosen. */
import { Alert, Form, Input } from "antd";
import { useTranslation } from "react-i18next";
import { client, ifMatch, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { heldIn, PLATFORM_ONLY } from "../../lib/access";
import { PLATFORM, tenantOf, useScopes } from "../../lib/scopes";
import { useTenantNames } from "../../lib/tenantNames";
import { FormModal } from "../../parts/FormModal";
import { PermissionPicker } from "../../parts/PermissionPicker";
import { ScopeField } from "../../parts/ScopeField";

/** What the form begins with: a role that is there has an id, a revision and its place. */
export type RoleDraft = Pick<Schema<"Role">, "name" | "description" | "permissions"> & Partial<Pick<Schema<"Role">, "id" | "revision" | "tenant_id">>;

interface Values {
  name: string;
  description: string;
  permissions: string[];
  tenant: string;
}

/** Writes it: as a new role, or as another definition of the one that it is of. */
function write(draft: RoleDraft, { name, description, permissions, tenant }: Values): Promise<unknown> {
  if (draft.id === undefined || draft.revision === undefined) return client.POST("/roles", { body: { name, description, permissions, tenant: tenantOf(tenant) } });
  return client.PATCH("/roles/{id}", { params: { path: { id: draft.id }, header: ifMatch(draft.revision) }, body: { name, description, permissions } });
}

export function RoleForm({ draft, onClose }: { draft: RoleDraft | undefined; onClose: () => void }) {
  const { t } = useTranslation("people");
  const common = useTranslation();
  const scopes = useScopes("roles.create", true);
  if (draft === undefined) return null;
  const isNew = draft.id === undefined;
  return (
    <FormModal<Values, unknown>
      open
      title={isNew ? t("roles.create_title") : t("roles.edit_title", { name: draft.name })}
      submitLabel={common.t(isNew ? "create" : "save")}
      initial={{ name: draft.name, description: draft.description, permissions: draft.permissions, tenant: scopes.first }}
      submit={(values) => write(draft, values)}
      onClose={onClose}
      width={880}
    >
      {!isNew && <Alert type="info" showIcon title={t("roles.edit_text")} className="form-note" />}
      <Form.Item name="name" label={common.t("name")} rules={[{ required: true, max: 64 }]}>
        <Input maxLength={64} autoComplete="off" />
      </Form.Item>
      <Form.Item name="description" label={common.t("description")}>
        <Input maxLength={1000} autoComplete="off" />
      </Form.Item>
      {isNew && (
        <ScopeField
          name="tenant"
          label={t("roles.where")}
          help={t("roles.where_help")}
          tenants={scopes.tenants}
          platform={scopes.platform ? t("roles.everywhere") : undefined}
        />
      )}
      <Permissions draft={draft} />
    </FormModal>
  );
}

function Permissions({ draft }: { draft: RoleDraft }) {
  const { t } = useTranslation("people");
  const { me } = useSession();
  const { idOf } = useTenantNames();
  const form = Form.useFormInstance<Partial<Values>>();
  const scope = Form.useWatch("tenant", form) ?? PLATFORM;
  const chosen = scope === PLATFORM ? null : (idOf(scope) ?? scope);
  const tenantId = draft.id === undefined ? chosen : (draft.tenant_id ?? null);
  const held = heldIn(me.access, { tenantId });
  const refused = (permission: string) => {
    if (tenantId !== null && PLATFORM_ONLY.has(permission)) return t("picker.platform_only");
    return held.has(permission) ? undefined : t("picker.not_held");
  };
  return (
    <Form.Item name="permissions" label={t("roles.permissions")} rules={[{ required: true, type: "array", min: 1, message: t("roles.some_needed") }]}>
      <PermissionPicker refused={refused} />
    </Form.Item>
  );
}
