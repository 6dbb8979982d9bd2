/** Whose task it will be: the apps in which one may make tasks. */
import { Alert, Form, Select } from "antd";
import { useTranslation } from "react-i18next";
import { $api, type FieldError } from "../../api/client";
import { useSession } from "../../api/session";
import { Failure } from "../../parts/Failure";
import { errorOf } from "./errorOf";

interface Scope {
  tenant: string;
  app: string;
}

interface Properties {
  scope: Scope;
  onChange: (scope: Scope) => void;
  errors: readonly FieldError[];
}

export function AppChoice({ scope, onChange, errors }: Properties) {
  const { t } = useTranslation("tasks");
  const { may } = useSession();
  const { data, error, refetch } = $api.useQuery("get", "/apps", { params: { query: { limit: 500 } } });
  const apps = (data?.items ?? []).filter(({ tenant, id }) => may("tasks.create", { tenant, app: id }));
  const refused = { ...errorOf(errors, "tenant"), ...errorOf(errors, "app") };
  if (error !== null) return <Failure error={error} again={() => void refetch()} />;
  if (data !== undefined && apps.length === 0) return <Alert type="warning" showIcon title={t("editor.no_app")} />;
  // The tenant that is looked at comes first.
  const sorted = [...apps].sort((a, b) => Number(b.tenant === scope.tenant) - Number(a.tenant === scope.tenant) || `${a.tenant}/${a.name}`.localeCompare(`${b.tenant}/${b.name}`));
  const chosen = apps.find(({ tenant, name }) => tenant === scope.tenant && name === scope.app);
  return (
    <Form.Item label={t("fields.label.app")} htmlFor="task-app" extra={t("editor.app_help")} required {...refused}>
      <Select
        id="task-app"
        showSearch={{ optionFilterProp: "label" }}
        loading={data === undefined}
        value={chosen?.id ?? null}
        onChange={(id: string) => {
          const app = apps.find((each) => each.id === id);
          if (app !== undefined) onChange({ tenant: app.tenant, app: app.name });
        }}
        options={sorted.map(({ id, tenant, name }) => ({ value: id, label: `${tenant} / ${name}` }))}
        className="wide-select"
      />
    </Form.Item>
  );
}
