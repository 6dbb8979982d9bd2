/** Chooses the app whose executors are shown; the API filters by its name. */
import { Select } from "antd";
import { useTranslation } from "react-i18next";
import { $api } from "../../api/client";
import { useSession } from "../../api/session";

interface Properties {
  tenant: string | undefined;
  value: string | undefined;
  onChange: (app: string | undefined) => void;
}

export function AppFilter({ tenant, value, onChange }: Properties) {
  const { t: own } = useTranslation("executors");
  const { may } = useSession();
  const { data } = $api.useQuery("get", "/apps", { params: { query: { tenant, limit: 500 } } }, { enabled: may("apps.read", { tenant }) });
  // Apps of several tenants may share a name.
  const names = new Set([...(data?.items.map((app) => app.name) ?? []), ...(value === undefined ? [] : [value])]);
  const options = [...names].sort((a, b) => a.localeCompare(b)).map((name) => ({ value: name, label: name }));
  return (
    <Select
      className="filter"
      aria-label={own("executors.filter_app")}
      placeholder={own("executors.any_app")}
      showSearch
      allowClear
      value={value}
      options={options}
      onChange={(app: string | undefined) => onChange(app)}
    />
  );
}
