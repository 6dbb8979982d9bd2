/** The shards of a run. */
import { Empty, Flex, Progress, Spin, Typography, type TableProps } from "antd";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { $api } from "../../api/client";
import { useLink } from "../../lib/tenant";
import type { Log } from "../../lib/taskLog";
import { Failure } from "../../parts/Failure";
import { BY_BEFORE, itemsOf, List } from "../../parts/List";
import { LogStatus } from "../../parts/Tags";
import { LogCard } from "./columns";
import { useNames } from "./names";
import { Attempts, Duration, Lateness, Name, ShortReason } from "./Words";
import { DataTable } from "../../parts/DataTable";

type Columns = NonNullable<TableProps<Log>["columns"]>;

/** Shards that an unfolded row shows. */
const FIRST = 50;

function useShardColumns(names: ReturnType<typeof useNames>): Columns {
  const { t } = useTranslation("logs");
  const { t: common } = useTranslation();
  const link = useLink();
  return [
    { title: t("shard"), key: "shard", width: 90, render: (_, log) => <Link to={link(`/logs/${log.id}`)}>{log.shard_index}</Link> },
    { title: common("status"), key: "status", width: 130, render: (_, log) => <LogStatus status={log.status} /> },
    { title: t("reason"), key: "reason", width: 140, render: (_, log) => <ShortReason reason={log.reason} /> },
    { title: t("lateness"), key: "lateness", width: 90, align: "end", render: (_, log) => <Lateness log={log} /> },
    { title: t("duration"), key: "duration", width: 100, align: "end", render: (_, log) => <Duration log={log} /> },
    { title: t("attempts"), key: "attempts", width: 110, align: "end", render: (_, log) => <Attempts log={log} /> },
    { title: common("executor"), key: "executor", width: 180, render: (_, log) => (log.executor == null ? "–" : <Name>{names.executor(log.executor)}</Name>) },
    { title: t("message"), key: "message", width: 200, render: (_, log) => <Name>{log.message}</Name> },
  ];
}

function queryOf(parent: Log, limit: number) {
  // With the task the node finds them fast.
  return { params: { query: { parent: parent.id, task: parent.task, tenant: parent.tenant, order: "oldest" as const, limit } } };
}

/** The first shards of a run, below its row. */
export function FirstShards({ parent }: { parent: Log }) {
  const { t } = useTranslation("logs");
  const link = useLink();
  const names = useNames(parent.tenant);
  const columns = useShardColumns(names);
  const { data, error, refetch } = $api.useQuery("get", "/task-logs", queryOf(parent, FIRST));
  if (error !== null) return <Failure error={error} again={() => void refetch()} />;
  if (data === undefined) return <Spin />;
  if (data.items.length === 0) return <Empty image={Empty.PRESENTED_IMAGE_SIMPLE} description={t("no_shards")} />;
  return (
    <Flex vertical gap="small" className="log-shards">
      <DataTable<Log> size="small" rowKey="id" pagination={false} virtual={false} columns={columns} dataSource={data.items} scroll={{ x: "max-content" }} />
      {data.next != null && (
        <Typography.Text type="secondary">
          {t("some_shards", { count: data.items.length })} <Link to={link(`/logs/${parent.id}`)}>{t("all_shards")}</Link>
        </Typography.Text>
      )}
    </Flex>
  );
}

/** All shards of a run, and how far they have come. */
export function AllShards({ parent }: { parent: Log }) {
  const { t } = useTranslation("logs");
  const names = useNames(parent.tenant);
  const columns = useShardColumns(names);
  const pages = $api.useInfiniteQuery("get", "/task-logs", queryOf(parent, 200), BY_BEFORE);
  const { total, started, ended, succeeded } = parent.shards ?? { total: 0, started: 0, ended: 0, succeeded: 0 };
  const failed = ended - succeeded;
  const percent = (count: number) => (total === 0 ? 0 : Math.floor((100 * count) / total));
  return (
    <Flex vertical gap="small">
      <Progress
        percent={percent(ended)}
        success={{ percent: percent(succeeded) }}
        status={failed > 0 ? "exception" : "normal"}
        aria-label={t("shards_done", { ended, total })}
      />
      <Typography.Text>{t("progress", { total, started, ended, succeeded })}</Typography.Text>
      <List<Log>
        label={t("shards")}
        pages={pages}
        items={itemsOf<Log>(pages)}
        rowKey={(log) => log.id}
        columns={columns}
        card={(log) => <LogCard log={log} names={names} />}
        whenEmpty={t("no_shards")}
      />
    </Flex>
  );
}
