import { Alert, Descriptions, Flex, Typography } from "antd";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Link, useParams } from "react-router";
import { $api, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { Waiting } from "../../parts/Waiting";
import { heldIn } from "../../lib/access";
import { useLink } from "../../lib/tenant";
import { Failure } from "../../parts/Failure";
import { Moment } from "../../parts/Moment";
import { Page } from "../../parts/Page";
import { GrantSection } from "./GrantSection";
import { useScopeName } from "./Grants";
import { UserActions } from "./UserActions";
import { UserStates } from "./UserStates";

type User = Schema<"User">;

export default function UserDetail() {
  const common = useTranslation();
  const { id = "" } = useParams();
  const user = $api.useQuery("get", "/users/{id}", { params: { path: { id } } });
  const failure = <Failure error={user.error} again={() => void user.refetch()} />;
  if (user.data !== undefined) return <Shown user={user.data} failure={failure} />;
  return <Page title={common.t("pages.users")}>{user.error === null ? <Waiting /> : failure}</Page>;
}

function Shown({ user, failure }: { user: User; failure: ReactNode }) {
  const { t } = useTranslation("people");
  const { me } = useSession();
  const scopeName = useScopeName();
  const held = heldIn(me.access, { tenantId: user.tenant_id ?? null });
  const isManaged = held.has("users.edit") || held.has("users.delete");
  return (
    <Page title={user.display_name === "" ? user.name : `${user.name} · ${user.display_name}`} subtitle={<UserStates user={user} />} actions={isManaged && <UserActions user={user} />}>
      {failure}
      {!isManaged && <Alert type="info" showIcon title={t("users.not_mine", { scope: scopeName(user.tenant_id) })} />}
      <Account user={user} />
      <GrantSection user={user} />
      <Elsewhere user={user} />
    </Page>
  );
}

function Account({ user }: { user: User }) {
  const { t } = useTranslation("people");
  const common = useTranslation();
  const scopeName = useScopeName();
  const items = [
    { key: "name", label: t("users.name"), children: user.name },
    { key: "display_name", label: t("users.display_name"), children: user.display_name === "" ? "–" : user.display_name },
    { key: "tenant", label: t("users.managed_by"), children: scopeName(user.tenant_id) },
    { key: "login", label: t("users.last_login"), children: <Moment at={user.last_login_at} otherwise={common.t("never")} /> },
    { key: "created", label: common.t("created_at"), children: <Moment at={user.created_at} /> },
    { key: "updated", label: common.t("updated_at"), children: <Moment at={user.updated_at} /> },
    { key: "id", label: common.t("id"), children: <span className="mono">{user.id}</span> },
    ...(user.subject == null ? [] : [{ key: "subject", label: t("users.single_sign_on"), children: <span className="mono">{user.subject}</span> }]),
  ];
  return (
    <section aria-label={t("users.account")}>
      <Typography.Title level={2} className="section-title">
        {t("users.account")}
      </Typography.Title>
      <Descriptions size="small" column={{ xs: 1, md: 2 }} items={items} />
    </section>
  );
}

/** Where else something stands about the user. */
function Elsewhere({ user }: { user: User }) {
  const { t } = useTranslation("people");
  const { may } = useSession();
  const link = useLink();
  return (
    <Flex gap="middle" wrap>
      {may("tokens.read") && <Link to={link("/tokens", { user: user.id })}>{t("users.tokens")}</Link>}
      {may("audit.read") && <Link to={link("/audit", { actor: user.id })}>{t("users.did")}</Link>}
      {may("audit.read") && <Link to={link("/audit", { kind: "user", target: user.id })}>{t("users.about_user")}</Link>}
    </Flex>
  );
}
