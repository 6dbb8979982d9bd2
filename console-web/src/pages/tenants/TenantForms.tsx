/** The forms of a tenant. */
import { Form, Input } from "antd";
import { useTranslation } from "react-i18next";
import { client, ifMatch, type Schema } from "../../api/client";
import { FormModal } from "../../parts/FormModal";

/** As the node has it: names that stand in addresses and files. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

function DescriptionField() {
  const { t } = useTranslation("admin");
  const common = useTranslation();
  return (
    <Form.Item name="description" label={common.t("description")} extra={t("tenants.description_help")}>
      <Input.TextArea maxLength={1000} className="grows" rows={2} />
    </Form.Item>
  );
}

export function CreateTenant({ open, onClose }: { open: boolean; onClose: () => void }) {
  const { t } = useTranslation("admin");
  const common = useTranslation();
  return (
    <FormModal<Schema<"NewTenant">, unknown>
      open={open}
      title={t("tenants.create_title")}
      submitLabel={common.t("create")}
      initial={{ name: "", description: "" }}
      submit={(body) => client.POST("/tenants", { body })}
      onClose={onClose}
    >
      <Form.Item name="name" label={common.t("name")} extra={t("tenants.name_help")} rules={[{ required: true, pattern: NAME, message: t("tenants.name_rule") }]}>
        <Input autoComplete="off" />
      </Form.Item>
      <DescriptionField />
    </FormModal>
  );
}

export function EditTenant({ tenant, onClose }: { tenant: Schema<"Tenant"> | undefined; onClose: () => void }) {
  const { t } = useTranslation("admin");
  const common = useTranslation();
  if (tenant === undefined) return null;
  const params = { path: { tenant: tenant.name }, header: ifMatch(tenant.revision) };
  return (
    <FormModal<Schema<"TenantPatch">, unknown>
      open
      title={t("tenants.edit_title", { name: tenant.name })}
      submitLabel={common.t("save")}
      initial={{ description: tenant.description }}
      submit={(body) => client.PATCH("/tenants/{tenant}", { params, body })}
      onClose={onClose}
    >
      <DescriptionField />
    </FormModal>
  );
}
