/** The form of a tenant's quotas. */
import { Form, InputNumber, Typography } from "antd";
import { useTranslation } from "react-i18next";
import type { Schema } from "../../api/client";
import { FormModal } from "../../parts/FormModal";

type Quotas = Required<Schema<"QuotasPatch">>;

const FIELDS = [
  { name: "max_tasks", unit: "unit_tasks", max: 1_000_000 },
  { name: "max_fires_per_minute", unit: "unit_fires", max: 1_000_000 },
  { name: "max_concurrent", unit: "unit_runs", max: 1_000_000 },
  { name: "retain_days", unit: "unit_days", max: 3_650 },
] as const;

interface Properties {
  open: boolean;
  tenant: string;
  quotas: Schema<"TenantQuotas">;
  submit: (quotas: Quotas) => Promise<unknown>;
  onClose: () => void;
}

export function QuotaForm({ open, tenant, quotas, submit, onClose }: Properties) {
  const { t } = useTranslation("admin");
  const common = useTranslation();
  const { max_tasks, max_fires_per_minute, max_concurrent, retain_days } = quotas;
  return (
    <FormModal<Quotas, unknown>
      open={open}
      title={t("quotas.edit_title", { tenant })}
      submitLabel={common.t("save")}
      initial={{ max_tasks, max_fires_per_minute, max_concurrent, retain_days }}
      submit={submit}
      onClose={onClose}
    >
      <Typography.Paragraph>{t("quotas.zero")}</Typography.Paragraph>
      {FIELDS.map(({ name, unit, max }) => (
        <Form.Item key={name} name={name} label={t(`quotas.${name}`)} extra={t(`quotas.${name}_help`)} rules={[{ required: true, type: "integer", min: 0, max }]}>
          <InputNumber min={0} max={max} precision={0} suffix={t(`quotas.${unit}`)} className="full" />
        </Form.Item>
      ))}
    </FormModal>
  );
}
