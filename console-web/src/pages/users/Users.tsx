import { Button, Flex, Input, Typography, type TableProps } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { $api, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { useFilters } from "../../lib/search";
import { useLink, useTenant } from "../../lib/tenant";
import { useTenantNames } from "../../lib/tenantNames";
import { touches } from "../../lib/users";
import { BY_AFTER, itemsOf, List } from "../../parts/List";
import { Moment } from "../../parts/Moment";
import { Page } from "../../parts/Page";
import { useSettled } from "../../parts/useSettled";
import { CreateUser } from "./CreateUser";
import { GrantTags, useScopeName } from "./Grants";
import { UserStates } from "./UserStates";

type User = Schema<"User">;

const PAGE = 200;
/** Characters that the API searches by. */
const MOST_SEARCHED = 100;
/** Nothing is asked while one types, ms. */
const SETTLE_MS = 250;

function NameOf({ user }: { user: User }) {
  const link = useLink();
  return (
    <>
      <Link to={link(`/users/${user.id}`)}>{user.name}</Link>
      {user.display_name !== "" && <Typography.Text type="secondary"> {user.display_name}</Typography.Text>}
    </>
  );
}

function useColumns(): NonNullable<TableProps<User>["columns"]> {
  const { t } = useTranslation("people");
  const common = useTranslation();
  const scopeName = useScopeName();
  return [
    { title: t("users.name"), key: "name", width: 200, render: (_, user) => <NameOf user={user} /> },
    { title: common.t("status"), key: "states", width: 190, render: (_, user) => <UserStates user={user} /> },
    { title: t("users.grants"), key: "grants", width: 290, render: (_, user) => <GrantTags grants={user.grants} /> },
    { title: t("users.managed_by"), key: "tenant", width: 130, render: (_, user) => scopeName(user.tenant_id) },
    { title: t("users.last_login"), key: "login", width: 175, render: (_, user) => <Moment at={user.last_login_at} otherwise={common.t("never")} /> },
  ];
}

export default function Users() {
  const { t } = useTranslation("people");
  const common = useTranslation();
  const { mayWhole } = useSession();
  const { tenant } = useTenant();
  const { idOf } = useTenantNames();
  const { filters, set } = useFilters(["search"]);
  const [creating, setCreating] = useState(false);
  const columns = useColumns();
  const search = useSettled((filters.search ?? "").trim(), SETTLE_MS);
  const query = { limit: PAGE, ...(search === "" ? {} : { search }) };
  const pages = $api.useInfiniteQuery("get", "/users", { params: { query } }, { ...BY_AFTER, placeholderData: (last) => last });
  // The API does not narrow by tenant: what has been read is looked through, and more is read until there is enough.
  const tenantId = tenant === undefined ? undefined : idOf(tenant);
  const users = itemsOf(pages).filter((user) => tenantId === undefined || touches(user, tenantId));
  const create = mayWhole("users.create", tenant) && (
    <Button type="primary" onClick={() => setCreating(true)}>
      {t("users.create")}
    </Button>
  );
  return (
    <Page title={common.t("pages.users")} subtitle={tenant === undefined ? t("users.about") : t("users.about_tenant", { tenant })} actions={create}>
      <Input.Search
        className="filter"
        allowClear
        aria-label={t("users.search")}
        placeholder={t("users.search")}
        maxLength={MOST_SEARCHED}
        value={filters.search ?? ""}
        onChange={(event) => set({ search: event.target.value })}
      />
      <List<User>
        label={common.t("pages.users")}
        pages={pages}
        items={users}
        isFiltered={filters.search !== undefined}
        rowKey={({ id }) => id}
        columns={columns}
        whenEmpty={t("users.empty")}
        card={(user) => (
          <Flex vertical gap="small">
            <strong>
              <NameOf user={user} />
            </strong>
            <UserStates user={user} />
            <GrantTags grants={user.grants} />
            <span>
              {t("users.last_login")}: <Moment at={user.last_login_at} otherwise={common.t("never")} />
            </span>
          </Flex>
        )}
      />
      <CreateUser open={creating} onClose={() => setCreating(false)} />
    </Page>
  );
}
