/** A form's field for a place: a tenant, or the platform. */
import { Form, Select } from "antd";
import { useTranslation } from "react-i18next";
import { PLATFORM } from "../lib/scopes";

interface Properties {
  /** Name of the field. */
  name: string;
  label: string;
  help: string;
  tenants: readonly string[];
  /** What the platform is called here; absent: it cannot be chosen. */
  platform: string | undefined;
  onChange?: () => void;
}

export function ScopeField({ name, label, help, tenants, platform, onChange }: Properties) {
  const { t } = useTranslation();
  const options = tenants.map((tenant) => ({ value: tenant, label: `${t("tenant")} ${tenant}` }));
  return (
    <Form.Item name={name} label={label} extra={help} rules={[{ required: true }]}>
      <Select showSearch onChange={onChange} options={platform === undefined ? options : [...options, { value: PLATFORM, label: platform }]} />
    </Form.Item>
  );
}
