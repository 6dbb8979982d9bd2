/** The form of a grant: where, which role, in which apps; what one cannot give is not to be chosen. */
import { Alert, Form, Input, Select } from "antd";
import { useTranslation } from "react-i18next";
import { $api, client, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { lacking } from "../../lib/access";
import { useRoleDescription } from "../../lib/described";
import { PLATFORM, tenantOf, useScopes } from "../../lib/scopes";
import { useAppNames, useTenantNames } from "../../lib/tenantNames";
import { FormModal } from "../../parts/FormModal";
import { PermissionPicker } from "../../parts/PermissionPicker";
import { ScopeField } from "../../parts/ScopeField";

interface Values {
  tenant: string;
  role?: string;
  apps: string[];
  /** The user's name, typed where the role would hold everywhere. */
  typed?: string;
}

interface Properties {
  open: boolean;
  user: Schema<"User">;
  onClose: () => void;
}

export function GrantForm({ open, user, onClose }: Properties) {
  const { t } = useTranslation("people");
  const common = useTranslation();
  const { may } = useSession();
  const { nameOf } = useTenantNames();
  const scopes = useScopes("grants.create", false);
  // The user's own tenant, else the chosen one; the platform is nothing that a form begins with.
  const own = user.tenant_id == null ? undefined : nameOf(user.tenant_id);
  const first = [own, scopes.first].find((scope) => scope !== undefined && scopes.tenants.includes(scope));
  const grant = ({ tenant, role = "", apps }: Values) =>
    client.POST("/users/{id}/grants", { params: { path: { id: user.id } }, body: { role, tenant: tenantOf(tenant), apps: tenant === PLATFORM ? [] : apps } });
  return (
    <FormModal<Values, unknown>
      open={open}
      title={t("users.grant_title", { name: user.name })}
      submitLabel={t("users.grant_submit")}
      initial={{ tenant: first, apps: [] }}
      submit={grant}
      onClose={onClose}
      width={720}
    >
      {(form) => (
        <>
          <ScopeField
            name="tenant"
            label={t("users.grant_where")}
            help={t("users.grant_where_help")}
            tenants={scopes.tenants}
            platform={scopes.platform ? common.t("the_platform") : undefined}
            onChange={() => form.setFieldsValue({ apps: [] })}
          />
          {may("roles.read") ? <Fields user={user} /> : <Alert type="info" showIcon title={t("users.no_roles")} />}
        </>
      )}
    </FormModal>
  );
}

function Fields({ user }: { user: Schema<"User"> }) {
  const { t } = useTranslation("people");
  const { me } = useSession();
  const { idOf } = useTenantNames();
  const description = useRoleDescription();
  const form = Form.useFormInstance<Partial<Values>>();
  const scope = Form.useWatch("tenant", form);
  const chosen = Form.useWatch("role", form);
  const apps = Form.useWatch("apps", form) ?? [];
  const roles = $api.useQuery("get", "/roles", { params: { query: { limit: 500 } } });
  if (scope === undefined) return null;
  const tenantId = scope === PLATFORM ? null : (idOf(scope) ?? scope);
  const options = (roles.data?.items ?? [])
    .filter((role) => role.tenant_id == null || role.tenant_id === tenantId)
    .map((role) => {
      const count = lacking(me.access, role.permissions, { tenantId, apps }).length;
      return { value: role.id, label: count === 0 ? role.name : t("users.grant_role_lacking", { role: role.name, count }), disabled: count > 0 };
    });
  const role = roles.data?.items.find(({ id }) => id === chosen);
  return (
    <>
      {scope !== PLATFORM && <AppsField tenant={scope} />}
      <Form.Item name="role" label={t("users.grant_role")} extra={role === undefined ? undefined : description(role)} rules={[{ required: true }]}>
        <Select showSearch={{ optionFilterProp: "label" }} loading={roles.isPending} options={options} />
      </Form.Item>
      {role !== undefined && (
        <Form.Item label={t("users.grant_allows")}>
          <PermissionPicker readOnly value={role.permissions} />
        </Form.Item>
      )}
      {scope === PLATFORM && <Everywhere name={user.name} />}
    </>
  );
}

/** A role that holds in every tenant asks for the name of the user who gets it. */
function Everywhere({ name }: { name: string }) {
  const { t } = useTranslation("people");
  const common = useTranslation();
  return (
    <>
      <Alert type="warning" showIcon title={t("users.grant_everywhere", { name })} className="form-note" />
      <Form.Item name="typed" label={common.t("type_to_confirm", { name })} rules={[{ required: true, pattern: exactly(name), message: common.t("type_to_confirm", { name }) }]}>
        <Input autoComplete="off" />
      </Form.Item>
    </>
  );
}

function exactly(text: string): RegExp {
  return new RegExp(`^${text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)}$`);
}

function AppsField({ tenant }: { tenant: string }) {
  const { t } = useTranslation("people");
  const { apps } = useAppNames(tenant);
  return (
    <Form.Item name="apps" label={t("users.grant_apps")} extra={t("users.grant_apps_help")}>
      <Select mode="multiple" placeholder={t("users.grant_apps_any")} showSearch={{ optionFilterProp: "label" }} options={apps.map(({ id, name }) => ({ value: id, label: name }))} />
    </Form.Item>
  );
}
