/** A list of API tokens: everybody's, or one's own. */
import { Button, Flex, Popover, type TableProps } from "antd";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { useNow } from "../../lib/now";
import { useLink } from "../../lib/tenant";
import { useTenantNames } from "../../lib/tenantNames";
import { lifeOf } from "../../lib/tokens";
import { Confirm } from "../../parts/Confirm";
import { List, type Pages } from "../../parts/List";
import { Moment } from "../../parts/Moment";
import { Word } from "../../parts/Tags";
import { useAction } from "../../parts/useAction";

type Token = Schema<"Token">;

interface Properties {
  pages: Pages<Token>;
  label: string;
  whenEmpty: string;
  isFiltered?: boolean;
  /** Whether they are of several users. */
  withOwner?: boolean;
  /** Whether one may revoke them. */
  mayRevoke: boolean;
  revoke: (id: string) => Promise<unknown>;
}

function Expires({ at }: { at: number }) {
  const { t } = useTranslation("people");
  const life = lifeOf(at, useNow(60_000));
  return (
    <Flex gap="small" align="center" wrap>
      <Moment at={at} exactness="minute" />
      {life === "void" && <Word tone="bad">{t("tokens.expired")}</Word>}
      {life === "soon" && <Word tone="odd">{t("tokens.soon")}</Word>}
    </Flex>
  );
}

function Allowed({ permissions }: { permissions: readonly string[] }) {
  const { t } = useTranslation("people");
  const all = (
    <ul className="plain-list scrolls mono">
      {permissions.map((permission) => (
        <li key={permission}>{permission}</li>
      ))}
    </ul>
  );
  return (
    <Popover content={all} trigger={["click", "focus"]}>
      <Button type="link" size="small" className="in-cell" aria-label={`${t("tokens.show_permissions")}: ${permissions.length}`}>
        {permissions.length}
      </Button>
    </Popover>
  );
}

function Owner({ token }: { token: Token }) {
  const { may } = useSession();
  const link = useLink();
  return may("users.read") ? <Link to={link(`/users/${token.user_id}`)}>{token.user}</Link> : <>{token.user}</>;
}

export function TokenList({ pages, label, whenEmpty, isFiltered = false, withOwner = false, mayRevoke, revoke }: Properties) {
  const { t } = useTranslation("people");
  const common = useTranslation();
  const { nameOf } = useTenantNames();
  const { run } = useAction();
  const scope = (token: Token) => (token.tenant_id == null ? t("tokens.everywhere") : nameOf(token.tenant_id));
  const revoker = ({ id, name }: Token) =>
    mayRevoke && (
      <Confirm label={t("tokens.revoke")} question={t("tokens.revoke_question", { name })} consequence={t("tokens.revoke_text")} button={{ size: "small" }} onConfirm={() => run(() => revoke(id))} />
    );
  const used = (token: Token) => <Moment at={token.used_at} exactness="minute" otherwise={t("tokens.never_used")} />;
  const columns: NonNullable<TableProps<Token>["columns"]> = [
    { title: t("tokens.name"), key: "name", width: 170, render: (_, token) => token.name },
    ...(withOwner ? [{ title: t("tokens.user"), key: "user", width: 110, render: (_: unknown, token: Token) => <Owner token={token} /> }] : []),
    { title: t("tokens.tenant"), key: "tenant", width: 140, render: (_, token) => scope(token) },
    { title: t("tokens.permissions"), key: "permissions", width: 105, render: (_, token) => <Allowed permissions={token.permissions} /> },
    { title: t("tokens.expires"), key: "expires", width: 150, render: (_, token) => <Expires at={token.expires_at} /> },
    { title: t("tokens.used"), key: "used", width: 140, render: (_, token) => used(token) },
    { title: common.t("created_at"), key: "created", width: 140, render: (_, token) => <Moment at={token.created_at} exactness="minute" /> },
    { title: common.t("actions"), key: "revoke", width: 95, render: (_, token) => revoker(token) },
  ];
  return (
    <List<Token>
      label={label}
      pages={pages}
      isFiltered={isFiltered}
      rowKey={({ id }) => id}
      columns={columns}
      whenEmpty={whenEmpty}
      card={(token) => (
        <Flex vertical gap="small" align="start">
          <strong>{token.name}</strong>
          {withOwner && <Owner token={token} />}
          <span>{scope(token)}</span>
          <Expires at={token.expires_at} />
          <span>
            {t("tokens.used")}: {used(token)}
          </span>
          <span>
            {t("tokens.permissions")}: <Allowed permissions={token.permissions} />
          </span>
          {revoker(token)}
        </Flex>
      )}
    />
  );
}
