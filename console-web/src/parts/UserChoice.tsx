/** Chooses a user by name where one may see users; else by id. */
import { Input, Select } from "antd";
import { useTranslation } from "react-i18next";
import { $api } from "../api/client";
import { useSession } from "../api/session";

interface Properties {
  /** User's id. */
  value: string | undefined;
  onChange: (id: string | undefined) => void;
  label: string;
}

export function UserChoice({ value, onChange, label }: Properties) {
  const { may } = useSession();
  return may("users.read") ? <Named value={value} onChange={onChange} label={label} /> : <ById value={value} onChange={onChange} label={label} />;
}

/** How many are offered; others are found by their id in the address. */
const MOST = 500;

function Named({ value, onChange, label }: Properties) {
  const { data, isPending } = $api.useQuery("get", "/users", { params: { query: { limit: MOST } } });
  const users = data?.items ?? [];
  const options = users.map(({ id, name, display_name }) => ({ value: id, label: display_name === "" ? name : `${name} · ${display_name}` }));
  const known = value === undefined || isPending || users.some(({ id }) => id === value);
  return (
    <Select
      aria-label={label}
      placeholder={label}
      className="filter"
      allowClear
      showSearch={{ optionFilterProp: "label" }}
      loading={isPending}
      value={value}
      onChange={(id: string | undefined) => onChange(id)}
      options={known ? options : [...options, { value, label: value }]}
    />
  );
}

function ById({ value, onChange, label }: Properties) {
  const { t } = useTranslation();
  return (
    <Input.Search
      aria-label={label}
      placeholder={`${label} (${t("id")})`}
      className="filter"
      allowClear
      defaultValue={value}
      key={value}
      onSearch={(id) => onChange(id.trim() === "" ? undefined : id.trim())}
    />
  );
}
