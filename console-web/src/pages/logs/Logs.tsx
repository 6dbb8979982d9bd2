/** All task logs, newest first: filtered by the address, live while one looks at their beginning. */
import { LinkOutlined } from "@ant-design/icons";
import { Alert, App, Button, Flex } from "antd";
import { useEffect, useState, type UIEvent } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { frozen, goOn, LOG_FILTERS, MAX_ROWS, orderOf, showsShards, type LogFilters } from "../../lib/logList";
import { clusterNow } from "../../lib/now";
import { useFilters, withFilters } from "../../lib/search";
import { useLink, useTenant } from "../../lib/tenant";
import { isParent, type Log } from "../../lib/taskLog";
import { instant, viewerZone } from "../../lib/time";
import { FilterFold } from "../../parts/FilterFold";
import { List } from "../../parts/List";
import { Page } from "../../parts/Page";
import { LogCard, useColumns } from "./columns";
import { LogFilterBar } from "./LogFilters";
import { useNames } from "./names";
import { FirstShards } from "./Shards";
import { useLogList } from "./useLogList";

/** Further down than this one reads, and does not watch, px. */
const WATCHES_PX = 40;

/** Copies an address that shows tomorrow what this one shows now. */
function CopyLink({ filters, tenant }: { filters: LogFilters; tenant: string | undefined }) {
  const { t } = useTranslation("logs");
  const { message } = App.useApp();
  const copy = async () => {
    const search = withFilters(new URLSearchParams(), { tenant, ...frozen(filters, clusterNow()) });
    try {
      await navigator.clipboard.writeText(`${window.location.origin}${window.location.pathname}?${search.toString()}`);
      message.success(t("link_copied"));
    } catch {
      message.warning(t("copy_failed"));
    }
  };
  return (
    <Button icon={<LinkOutlined aria-hidden />} onClick={() => void copy()}>
      {t("copy_link")}
    </Button>
  );
}

function Newer({ count, isApart, readAt, show }: { count: number; isApart: boolean; readAt: number; show: () => void }) {
  const { t } = useTranslation("logs");
  return (
    <Alert
      type="info"
      role="status"
      title={`${isApart ? t("newer_many") : t("newer", { count })} ${t("as_of", { at: instant(readAt, viewerZone()) })}`}
      action={
        <Button size="small" type="primary" onClick={show}>
          {t("show_newer")}
        </Button>
      }
    />
  );
}

/**
 * Whether the user reads further down, in the list's own window or, on a narrow screen, in the page's. `list` says which
 * list it is: another one begins at its top.
 */
function useScrolled(list: string) {
  const [inList, setInList] = useState<string>();
  const [inPage, setInPage] = useState(false);
  useEffect(() => {
    const listener = () => setInPage(window.scrollY > WATCHES_PX);
    window.addEventListener("scroll", listener, { passive: true });
    return () => window.removeEventListener("scroll", listener);
  }, []);
  const onScrollCapture = ({ target }: UIEvent<HTMLElement>) => {
    // What only scrolls sideways, as the head of the table does, says nothing.
    if (!(target instanceof HTMLElement) || target.scrollHeight <= target.clientHeight) return;
    setInList(target.scrollTop > WATCHES_PX ? list : undefined);
  };
  return { isScrolled: inList === list || inPage, onScrollCapture };
}

export default function Logs() {
  const { t } = useTranslation("logs");
  const { t: common } = useTranslation();
  const { tenant } = useTenant();
  const link = useLink();
  const { filters, set, clear, isFiltered } = useFilters(LOG_FILTERS);
  // Grows when the user asks for newer rows.
  const [round, setRound] = useState(0);
  const list = `${round} ${JSON.stringify([tenant, filters])}`;
  const { isScrolled, onScrollCapture } = useScrolled(list);
  const { pages, items, newer, isApart, isTooLong, readAt, showNewer } = useLogList(tenant, filters, isScrolled);
  const names = useNames(tenant);
  const columns = useColumns(names);
  const last = items.at(-1);
  const show = () => {
    showNewer();
    window.scrollTo({ top: 0 });
    setRound((now) => now + 1);
  };
  return (
    <Page title={common("pages.logs")} actions={<CopyLink filters={filters} tenant={tenant} />}>
      <FilterFold count={Object.keys(filters).length} clear={clear}>
        <LogFilterBar tenant={tenant} filters={filters} set={set} clear={clear} isFiltered={isFiltered} />
      </FilterFold>
      {isScrolled && (newer > 0 || isApart) && <Newer count={newer} isApart={isApart} readAt={readAt} show={show} />}
      <div onScrollCapture={onScrollCapture}>
        <List<Log>
          key={list}
          label={t("list")}
          pages={pages}
          items={items}
          rowKey={(log) => log.id}
          columns={columns}
          card={(log) => <LogCard log={log} names={names} />}
          isFiltered={isFiltered}
          whenEmpty={
            <Flex vertical gap="small" align="center">
              {t("new_hint")}
              <Link to={link("/tasks")}>{t("to_tasks")}</Link>
            </Flex>
          }
          expandable={showsShards(filters) ? undefined : { rowExpandable: isParent, expandedRowRender: (log) => <FirstShards parent={log} /> }}
        />
      </div>
      {isTooLong && last !== undefined && (
        <Alert
          type="info"
          title={t(orderOf(filters) === "oldest" ? "too_many_later" : "too_many", { count: MAX_ROWS })}
          action={<Button onClick={() => set(goOn(filters, last))}>{t("go_on")}</Button>}
        />
      )}
    </Page>
  );
}
