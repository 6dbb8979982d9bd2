/** The form of a token: what it may be used for, where, and until when. */
import { DatePicker, Form, Input, Select } from "antd";
import dayjs, { type Dayjs } from "dayjs";
import { useTranslation } from "react-i18next";
import { client, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { heldAnywhere, PLATFORM_ONLY } from "../../lib/access";
import { clusterNow } from "../../lib/now";
import { PLATFORM, tenantOf } from "../../lib/scopes";
import { useTenant } from "../../lib/tenant";
import { useTenantNames } from "../../lib/tenantNames";
import { afterDays, EXPIRY_DAYS, isExpiry } from "../../lib/tokens";
import { FormModal } from "../../parts/FormModal";
import { PermissionPicker } from "../../parts/PermissionPicker";
import { ScopeField } from "../../parts/ScopeField";

/** The choice of an instant instead of a number of days. */
const OTHER = 0;
const YEAR = 365;

interface Values {
  name: string;
  tenant: string;
  permissions: string[];
  days: number;
  until?: Dayjs;
}

function create({ name, tenant, permissions, days, until }: Values) {
  const expires_at = days === OTHER ? (until?.valueOf() ?? 0) : afterDays(days, clusterNow());
  return client.POST("/account/tokens", { body: { name, tenant: tenantOf(tenant), permissions, expires_at } });
}

interface Properties {
  open: boolean;
  onMade: (token: Schema<"CreatedToken"> | undefined) => void;
  onClose: () => void;
}

export function TokenForm({ open, onMade, onClose }: Properties) {
  const { t } = useTranslation("people");
  const common = useTranslation();
  const { tenant } = useTenant();
  const { names } = useTenantNames();
  return (
    <FormModal<Values, Awaited<ReturnType<typeof create>>>
      open={open}
      title={t("tokens.create_title")}
      submitLabel={common.t("create")}
      initial={{ name: "", tenant: tenant ?? PLATFORM, permissions: [], days: 90 }}
      submit={create}
      then={({ data }) => onMade(data)}
      onClose={onClose}
      width={880}
    >
      <Form.Item name="name" label={t("tokens.name")} extra={t("tokens.name_help")} rules={[{ required: true, max: 100 }]}>
        <Input maxLength={100} autoComplete="off" />
      </Form.Item>
      <ScopeField name="tenant" label={t("tokens.tenant")} help={t("tokens.tenant_help")} tenants={names} platform={t("tokens.everywhere")} />
      <Expiry />
      <Permissions />
    </FormModal>
  );
}

function Expiry() {
  const { t } = useTranslation("people");
  const form = Form.useFormInstance<Partial<Values>>();
  const days = Form.useWatch("days", form);
  const options = [
    ...EXPIRY_DAYS.map((count) => ({ value: count, label: count === YEAR ? t("tokens.expiry_year") : t("tokens.expiry_days", { count }) })),
    { value: OTHER, label: t("tokens.expiry_other") },
  ];
  const check = (_: unknown, value: Dayjs | null | undefined) =>
    value != null && isExpiry(value.valueOf(), clusterNow()) ? Promise.resolve() : Promise.reject(new Error(t("tokens.expiry_rule")));
  return (
    <>
      <Form.Item name="days" label={t("tokens.expiry")}>
        <Select options={options} />
      </Form.Item>
      {days === OTHER && (
        <Form.Item name="until" label={t("tokens.expiry_until")} rules={[{ validator: check }]}>
          <DatePicker showTime={{ format: "HH:mm" }} format="YYYY-MM-DD HH:mm" minDate={dayjs()} className="full" />
        </Form.Item>
      )}
    </>
  );
}

function Permissions() {
  const { t } = useTranslation("people");
  const { me } = useSession();
  const form = Form.useFormInstance<Partial<Values>>();
  const tenant = Form.useWatch("tenant", form) ?? PLATFORM;
  // Also what is held in some apps only: the token then does it in those.
  const held = heldAnywhere(tenant === PLATFORM ? me.access : me.access.filter((each) => each.tenant_id == null || each.tenant === tenant));
  const refused = (permission: string) => {
    if (tenant !== PLATFORM && PLATFORM_ONLY.has(permission)) return t("picker.platform_only");
    return held.has(permission) ? undefined : t("picker.not_held");
  };
  return (
    <Form.Item name="permissions" label={t("tokens.permissions")} extra={t("tokens.permissions_help")} rules={[{ required: true, type: "array", min: 1, message: t("tokens.permissions_rule") }]}>
      <PermissionPicker refused={refused} />
    </Form.Item>
  );
}
