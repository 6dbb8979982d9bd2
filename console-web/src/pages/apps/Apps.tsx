/** The apps of a tenant, or of all that one may see. */
import { PlusOutlined } from "@ant-design/icons";
import { Button, Flex, Input, type TableProps } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, useNavigate } from "react-router";
import { $api, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { useFilters } from "../../lib/search";
import { useLink, useTenant } from "../../lib/tenant";
import { BY_AFTER, List } from "../../parts/List";
import { Moment } from "../../parts/Moment";
import { Page } from "../../parts/Page";
import { NewApp } from "./NewApp";
import { SecretOnce } from "./SecretOnce";

type App = Schema<"App">;

export default function Apps() {
  const { t } = useTranslation();
  const { t: own } = useTranslation("executors");
  const { mayWhole } = useSession();
  const { tenant } = useTenant();
  const link = useLink();
  const navigate = useNavigate();
  const { filters, set, isFiltered } = useFilters(["name"]);
  const [isNew, setIsNew] = useState(false);
  const [created, setCreated] = useState<Schema<"CreatedApp">>();
  const pages = $api.useInfiniteQuery("get", "/apps", { params: { query: { tenant, ...filters } } }, BY_AFTER);
  const columns: TableProps<App>["columns"] = [
    ...(tenant === undefined ? [{ title: t("tenant"), dataIndex: "tenant", width: 140 }] : []),
    { title: t("name"), key: "name", width: 200, render: (_, app) => <Link to={link(`/apps/${app.id}`)}>{app.name}</Link> },
    { title: t("description"), dataIndex: "description", width: 280, ellipsis: true },
    { title: own("apps.sign_method"), key: "sign", width: 190, render: (_, app) => (app.sign_method === "" ? own("apps.sign_any") : app.sign_method) },
    { title: own("apps.max_concurrent"), key: "max", width: 130, render: (_, app) => (app.max_concurrent === 0 ? t("unlimited") : <span className="number">{app.max_concurrent}</span>) },
    { title: t("created_at"), key: "created", width: 180, render: (_, app) => <Moment at={app.created_at} exactness="minute" /> },
  ];
  const mayCreate = mayWhole("apps.create", tenant);
  const create = mayCreate && (
    <Button type="primary" icon={<PlusOutlined aria-hidden />} onClick={() => setIsNew(true)}>
      {own("apps.create")}
    </Button>
  );
  return (
    <Page title={t("pages.apps")} subtitle={own("apps.subtitle")} actions={create}>
      <Flex gap="small" wrap>
        <Input.Search
          className="filter"
          allowClear
          key={filters.name}
          defaultValue={filters.name}
          placeholder={own("apps.name_filter")}
          aria-label={own("apps.name_filter")}
          onSearch={(name) => set({ name })}
        />
      </Flex>
      <List<App>
        label={t("pages.apps")}
        pages={pages}
        rowKey={(app) => app.id}
        columns={columns}
        isFiltered={isFiltered}
        whenEmpty={mayCreate ? <p>{own("apps.empty")}</p> : undefined}
        card={(app) => (
          <Flex vertical>
            <Link to={link(`/apps/${app.id}`)}>{tenant === undefined ? `${app.tenant} / ${app.name}` : app.name}</Link>
            {app.description !== "" && <span>{app.description}</span>}
            <span>{`${own("apps.sign_method")}: ${app.sign_method === "" ? own("apps.sign_any") : app.sign_method}`}</span>
            <span>{`${own("apps.max_concurrent")}: ${app.max_concurrent === 0 ? t("unlimited") : app.max_concurrent}`}</span>
          </Flex>
        )}
      />
      {isNew && <NewApp tenant={tenant} onCreated={setCreated} onClose={() => setIsNew(false)} />}
      {created !== undefined && (
        <SecretOnce
          app={created}
          secret={created.key}
          onClose={() => {
            setCreated(undefined);
            void navigate(link(`/apps/${created.id}`));
          }}
        />
      )}
    </Page>
  );
}
