/** What surrounds every page: menu, tenant, language, appearance, account, and how live the page is. */
import { MenuOutlined, UserOutlined } from "@ant-design/icons";
import { Badge, Button, Drawer, Dropdown, Flex, Grid, Layout as Frame, Menu, Select, type MenuProps } from "antd";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Link, useLocation } from "react-router";
import { $api, client } from "../api/client";
import { useLive } from "../lib/live";
import { tenantsOf, useSession } from "../api/session";
import { useLink, useTenant } from "../lib/tenant";
import { DisplayMenus } from "../parts/DisplayMenus";
import { useFollowByKey } from "../parts/useFollowByKey";
import { Banner } from "./Banner";
import { PAGES, type Group } from "./pages";

const GROUPS: readonly Group[] = ["group_runs", "group_engine", "group_people"];

function Navigation({ onChosen }: { onChosen?: () => void }) {
  const { t } = useTranslation();
  const { may } = useSession();
  const link = useLink();
  const { pathname } = useLocation();
  const allowed = PAGES.filter((page) => page.menu !== undefined && (page.needs === undefined || may(page.needs)));
  const items: MenuProps["items"] = GROUPS.map((group) => ({
    key: group,
    type: "group" as const,
    label: t(`pages.${group}`),
    children: allowed
      .filter((page) => page.menu?.group === group)
      .map((page) => ({
        key: page.path,
        icon: page.menu?.icon,
        label: (
          <Link to={link(page.path)} onClick={onChosen}>
            {t(`pages.${page.name}`)}
          </Link>
        ),
      })),
  })).filter((group) => group.children.length > 0);
  const selected = allowed
    .map((page) => page.path)
    .filter((path) => (path === "/" ? pathname === "/" : pathname === path || pathname.startsWith(`${path}/`)));
  return (
    <nav aria-label={t("menu")}>
      <Menu mode="inline" selectedKeys={selected} items={items} className="menu" />
    </nav>
  );
}

function TenantChoice() {
  const { t } = useTranslation();
  const { me } = useSession();
  const { tenant, choose } = useTenant();
  const names = tenantsOf(me.access);
  const seesAll = me.access.some((held) => held.tenant_id == null);
  if (!seesAll && names.length <= 1) return tenant === undefined ? null : <strong>{tenant}</strong>;
  return <TenantSelect names={names} seesAll={seesAll} tenant={tenant} choose={choose} label={t("tenant")} />;
}

interface TenantSelectProperties {
  names: string[];
  seesAll: boolean;
  tenant: string | undefined;
  choose: (tenant: string | undefined) => void;
  label: string;
}

function TenantSelect({ names, seesAll, tenant, choose, label }: TenantSelectProperties) {
  const { t } = useTranslation();
  // Users who see the platform may choose any tenant, even one in which they hold nothing themselves.
  const all = $api.useQuery("get", "/tenants", { params: { query: { limit: 500 } } }, { enabled: seesAll });
  const known = new Set([...names, ...(all.data?.items.map((item) => item.name) ?? []), ...(tenant === undefined ? [] : [tenant])]);
  const options = [...known].sort((a, b) => a.localeCompare(b)).map((name) => ({ value: name, label: name }));
  return (
    <Select
      aria-label={label}
      className="tenant-choice"
      showSearch
      value={tenant ?? ""}
      onChange={(value) => choose(value === "" ? undefined : value)}
      options={[{ value: "", label: t("all_tenants") }, ...options]}
    />
  );
}

function LiveMark() {
  const { t } = useTranslation();
  const { state } = useLive();
  const shown = {
    connected: { status: "success" as const, text: t("live.connected") },
    connecting: { status: "processing" as const, text: t("live.connecting") },
    disconnected: { status: "error" as const, text: t("live.disconnected_short") },
  }[state.is];
  return (
    <span className="live-mark" data-live={state.is}>
      <Badge status={shown.status} text={shown.text} />
    </span>
  );
}

function AccountMenu() {
  const { t } = useTranslation();
  const { me } = useSession();
  const link = useLink();
  const byKey = useFollowByKey();
  const signOut = async () => {
    // Whether or not the node heard it: this page forgets all that it has read.
    await client.POST("/logout").catch(() => undefined);
    window.location.assign("/");
  };
  return (
    <Dropdown
      trigger={["click"]}
      // Opened by keyboard, it is operated with the arrow keys.
      // eslint-disable-next-line jsx-a11y/no-autofocus -- it was opened to be used
      autoFocus
      menu={{
        items: [
          { key: "account", label: <Link to={link("/account")}>{t("own_account")}</Link>, onClick: byKey(link("/account")) },
          { key: "out", label: t("sign_out"), onClick: () => void signOut() },
        ],
      }}
    >
      <Button type="text" icon={<UserOutlined aria-hidden />} className="account" aria-label={`${t("own_account")}: ${me.display_name === "" ? me.name : me.display_name}`}>
        <span className="account-name">{me.display_name === "" ? me.name : me.display_name}</span>
      </Button>
    </Dropdown>
  );
}

/** Who followed a link that is gone with its page goes on in the new page, not at the beginning of all. */
function useFocusOnPage(): void {
  const { pathname } = useLocation();
  const shown = useRef(pathname);
  useEffect(() => {
    // A new page starts at the top.
    if (shown.current === pathname) return;
    shown.current = pathname;
    if (document.activeElement === document.body) document.getElementById("content")?.focus({ preventScroll: true });
  }, [pathname]);
}

export function Layout({ children }: { children: ReactNode }) {
  const { t } = useTranslation();
  const isWide = Grid.useBreakpoint().lg !== false;
  const [open, setOpen] = useState(false);
  const link = useLink();
  useFocusOnPage();
  return (
    <Frame className="frame">
      <a className="skip" href="#content">
        {t("skip_to_content")}
      </a>
      <Frame.Header className="head">
        <Flex align="center" gap="small" className="head-row">
          {!isWide && <Button type="text" icon={<MenuOutlined aria-hidden />} aria-label={t("menu")} onClick={() => setOpen(true)} />}
          <Link to={link("/")} className="brand" aria-label={t("product")}>
            <img src="/bell.svg" alt="" width={22} height={22} />
            <span>{t("product")}</span>
          </Link>
          <TenantChoice />
          <span className="head-space" />
          <LiveMark />
          <DisplayMenus />
          <AccountMenu />
        </Flex>
      </Frame.Header>
      <Frame>
        {isWide ? (
          <Frame.Sider width={208} className="side">
            <Navigation />
          </Frame.Sider>
        ) : (
          <Drawer open={open} onClose={() => setOpen(false)} placement="left" size={260} title={t("product")} styles={{ body: { padding: 0 } }}>
            <Navigation onChosen={() => setOpen(false)} />
          </Drawer>
        )}
        <Frame.Content className="content" id="content" tabIndex={-1}>
          <Banner />
          {children}
        </Frame.Content>
      </Frame>
    </Frame>
  );
}
