/** The form of a new app. */
import { Form, Input, Select } from "antd";
import { useTranslation } from "react-i18next";
import { client, type Schema } from "../../api/client";
import { useTenantNames } from "../../parts/TenantFirst";
import { FormModal } from "../../parts/FormModal";

interface Properties {
  /** The chosen tenant. */
  tenant: string | undefined;
  onCreated: (app: Schema<"CreatedApp">) => void;
  onClose: () => void;
}

export function NewApp({ tenant, onCreated, onClose }: Properties) {
  const { t } = useTranslation();
  const { t: own } = useTranslation("executors");
  const names = useTenantNames("apps.create");
  const create = async (body: Schema<"NewApp">) => {
    const { data } = await client.POST("/apps", { body });
    return data;
  };
  return (
    <FormModal
      open
      title={own("apps.create_title")}
      submitLabel={t("create")}
      initial={{ tenant: tenant ?? (names.length === 1 ? names[0] : undefined), name: "", description: "" }}
      submit={create}
      then={(app) => {
        if (app !== undefined) onCreated(app);
      }}
      onClose={onClose}
    >
      <Form.Item name="tenant" label={t("tenant")} rules={[{ required: true }]}>
        <Select showSearch options={names.map((name) => ({ value: name, label: name }))} />
      </Form.Item>
      <Form.Item
        name="name"
        label={t("name")}
        extra={own("apps.name_help")}
        rules={[{ required: true }, { max: 64 }, { pattern: /^[A-Za-z0-9][A-Za-z0-9._-]*$/, message: own("apps.name_pattern") }]}
      >
        <Input autoComplete="off" />
      </Form.Item>
      <Form.Item name="description" label={`${t("description")} (${t("optional")})`} extra={own("apps.description_help")} rules={[{ max: 1_000 }]}>
        <Input.TextArea className="grows" rows={2} />
      </Form.Item>
    </FormModal>
  );
}
