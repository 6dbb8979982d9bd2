/** How a task log is shown in a list: as a row, and, on a narrow screen, as a card. */
import { Flex, Tooltip, Typography, type TableProps } from "antd";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useLink } from "../../lib/tenant";
import { isParent, type Log } from "../../lib/taskLog";
import { Moment } from "../../parts/Moment";
import { LogStatus } from "../../parts/Tags";
import type { useNames } from "./names";
import { Attempts, Duration, Lateness, Name, Trigger, ShortReason } from "./Words";

type Columns = NonNullable<TableProps<Log>["columns"]>;
type Names = ReturnType<typeof useNames>;

/** What a row says about shards: its own number, or how many of them have ended. */
function ShardNote({ log }: { log: Log }) {
  const { t } = useTranslation("logs");
  if (log.shards != null) return <Typography.Text type="secondary">{t("shards_done", { ended: log.shards.ended, total: log.shards.total })}</Typography.Text>;
  if (log.parent != null) return <Typography.Text type="secondary">{t("shard_of", { index: log.shard_index, total: log.shard_total })}</Typography.Text>;
  return null;
}

function State({ log }: { log: Log }) {
  return (
    <div className="log-state">
      <LogStatus status={log.status} />
      {log.reason !== "" && <ShortReason reason={log.reason} />}
    </div>
  );
}

/** The columns of a list of task logs. */
export function useColumns(names: Names): Columns {
  const { t } = useTranslation("logs");
  const { t: common } = useTranslation();
  const link = useLink();
  return useMemo<Columns>(
    () => [
      {
        title: t("fire_time"),
        key: "fire_time",
        width: 174,
        render: (_, log) => (
          <Link to={link(`/logs/${log.id}`)}>
            <Moment at={log.fire_time} exactness="millisecond" />
          </Link>
        ),
      },
      {
        title: common("task"),
        key: "task",
        width: 140,
        render: (_, log) => (
          <Flex vertical>
            <Link to={link(`/tasks/${log.task}`)}>
              <Name>{names.task(log)}</Name>
            </Link>
            <ShardNote log={log} />
          </Flex>
        ),
      },
      { title: common("status"), key: "status", width: 152, render: (_, log) => <State log={log} /> },
      { title: t("trigger"), key: "trigger", width: 84, render: (_, log) => <Trigger trigger={log.trigger} /> },
      {
        title: <Tooltip title={t("lateness_help")}>{t("lateness")}</Tooltip>,
        key: "lateness",
        width: 72,
        align: "end",
        render: (_, log) => <Lateness log={log} />,
      },
      { title: t("duration"), key: "duration", width: 76, align: "end", render: (_, log) => <Duration log={log} /> },
      { title: t("attempts"), key: "attempts", width: 90, align: "end", render: (_, log) => <Attempts log={log} /> },
      {
        title: common("executor"),
        key: "executor",
        width: 112,
        render: (_, log) => (log.executor == null ? "–" : <Name>{names.executor(log.executor)}</Name>),
      },
      { title: common("node"), key: "node", width: 68, render: (_, log) => (log.node == null ? "–" : <Name>{names.node(log.node)}</Name>) },
    ],
    [t, common, link, names],
  );
}

/** The same on a narrow screen. */
export function LogCard({ log, names }: { log: Log; names: Names }) {
  const { t } = useTranslation("logs");
  const link = useLink();
  return (
    <Flex vertical gap={4}>
      <Flex justify="space-between" gap="small" wrap>
        <Link to={link(`/logs/${log.id}`)}>
          <Moment at={log.fire_time} exactness="millisecond" />
        </Link>
        <State log={log} />
      </Flex>
      <Link to={link(`/tasks/${log.task}`)}>
        <Name>{names.task(log)}</Name>
      </Link>
      <ShardNote log={log} />
      <Typography.Text type="secondary">
        <Trigger trigger={log.trigger} />
        {!isParent(log) && log.started_at != null && (
          <>
            {` · ${t("lateness")} `}
            <Lateness log={log} />
            {` · ${t("duration")} `}
            <Duration log={log} />
          </>
        )}
      </Typography.Text>
    </Flex>
  );
}
