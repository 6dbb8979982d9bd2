/** Who I am to the node. */
import { Descriptions, Flex, Typography } from "antd";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { $api, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { useLink } from "../../lib/tenant";
import { GrantTags, useScopeName } from "../users/Grants";

function isKind(kind: string): kind is "user" | "token" | "setting" {
  return ["user", "token", "setting"].includes(kind);
}

export function Profile() {
  const { t } = useTranslation("people");
  const { me, may } = useSession();
  const link = useLink();
  const id = me.user_id ?? undefined;
  const maySee = id !== undefined && may("users.read");
  const own = $api.useQuery("get", "/users/{id}", { params: { path: { id: id ?? "" } } }, { enabled: maySee });
  return (
    <Flex vertical gap="middle">
      <Descriptions
        size="small"
        column={1}
        items={[
          { key: "name", label: t("account.name"), children: me.name },
          { key: "display_name", label: t("users.display_name"), children: me.display_name === "" ? "–" : me.display_name },
          { key: "kind", label: t("account.kind"), children: isKind(me.kind) ? t(`account.kind_${me.kind}`) : me.kind },
        ]}
      />
      {own.data !== undefined && <Known user={own.data} />}
      {maySee ? <Link to={link(`/users/${id}`)}>{t("account.manage")}</Link> : <Typography.Text type="secondary">{t("account.ask")}</Typography.Text>}
    </Flex>
  );
}

/** What only those see who may see users. */
function Known({ user }: { user: Schema<"User"> }) {
  const { t } = useTranslation("people");
  const scopeName = useScopeName();
  return (
    <Descriptions
      size="small"
      column={1}
      items={[
        { key: "roles", label: t("account.roles"), children: <div className="full-size"><GrantTags grants={user.grants} /></div> },
        { key: "tenant", label: t("users.managed_by"), children: scopeName(user.tenant_id) },
      ]}
    />
  );
}
