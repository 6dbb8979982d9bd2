/** The executors that are online, and one of them in a drawer. */
import { Flex, Tooltip, type TableProps } from "antd";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { $api, type Schema } from "../../api/client";
import { HEARTBEATS_MS } from "../../lib/backOff";
import { useFilters } from "../../lib/search";
import { useLink, useTenant } from "../../lib/tenant";
import { BY_AFTER, List, nearTop } from "../../parts/List";
import { Moment } from "../../parts/Moment";
import { Page } from "../../parts/Page";
import { AppFilter } from "./AppFilter";
import { ExecutorDrawer } from "./ExecutorDrawer";
import { Load } from "./Load";
import { NoExecutors } from "./NoExecutors";
import { State } from "./State";

type Executor = Schema<"Executor">;

/** So many handlers or tags stand in a row; the drawer has all. */
const SHOWN = 3;

function Some({ of }: { of: string[] }) {
  if (of.length === 0) return <>–</>;
  const rest = of.length - SHOWN;
  return (
    <Tooltip title={rest > 0 ? of.join(", ") : undefined}>
      <span>{of.slice(0, SHOWN).join(", ") + (rest > 0 ? ` +${rest}` : "")}</span>
    </Tooltip>
  );
}

export default function Executors() {
  const { t } = useTranslation();
  const { t: own } = useTranslation("executors");
  const { t: xxljob } = useTranslation("xxljob");
  const { tenant } = useTenant();
  const link = useLink();
  const { filters, set } = useFilters(["app", "executor"]);
  const { app } = filters;
  const pages = $api.useInfiniteQuery("get", "/executors", { params: { query: { tenant, app } } }, { ...BY_AFTER, refetchInterval: nearTop(HEARTBEATS_MS) });
  const detail = (executor: Executor) => <Link to={link("/executors", { app, executor: executor.id })}>{executor.address}</Link>;
  const columns: TableProps<Executor>["columns"] = [
    { title: own("executors.address"), key: "address", width: 220, render: (_, executor) => detail(executor) },
    ...(tenant === undefined ? [{ title: t("tenant"), dataIndex: "tenant", width: 120 }] : []),
    { title: t("app"), key: "app", width: 140, render: (_, executor) => <Link to={link(`/apps/${executor.app_id}`)}>{executor.app}</Link> },
    { title: t("status"), key: "state", width: 110, render: (_, executor) => <State of={executor} /> },
    { title: own("executors.load"), key: "load", width: 140, render: (_, executor) => <Load of={executor} /> },
    { title: own("executors.handlers"), key: "handlers", width: 220, render: (_, executor) => (executor.plain ? xxljob("executors.handlers_short") : <Some of={executor.handlers} />) },
    { title: own("executors.tags"), key: "tags", width: 140, render: (_, executor) => <Some of={executor.tags} /> },
    { title: own("executors.version"), key: "version", width: 100, render: (_, executor) => executor.version || "–" },
    { title: own("executors.weight"), dataIndex: "weight", width: 80, className: "number" },
    { title: own("executors.heartbeat"), key: "heartbeat", width: 130, render: (_, executor) => <Moment at={executor.heartbeat_at} relative /> },
  ];
  return (
    <Page title={t("pages.executors")} subtitle={own("executors.subtitle")}>
      <Flex gap="small" wrap>
        <AppFilter tenant={tenant} value={app} onChange={(chosen) => set({ app: chosen })} />
      </Flex>
      <List<Executor>
        label={t("pages.executors")}
        pages={pages}
        rowKey={(executor) => executor.id}
        columns={columns}
        isFiltered={app !== undefined}
        whenEmpty={<NoExecutors />}
        card={(executor) => (
          <Flex vertical gap={4} align="start">
            <Flex gap="small" wrap>
              {detail(executor)}
              <State of={executor} />
            </Flex>
            <span>{tenant === undefined ? `${executor.tenant} / ${executor.app}` : executor.app}</span>
            <Load of={executor} />
            <span>
              {`${own("executors.heartbeat")}: `}
              <Moment at={executor.heartbeat_at} relative />
            </span>
          </Flex>
        )}
      />
      {filters.executor !== undefined && <ExecutorDrawer id={filters.executor} onClose={() => set({ executor: undefined })} />}
    </Page>
  );
}
