/** What is known of a run: its state in plain words, what to do, and its figures. */
import { Alert, Descriptions, Flex, Typography, type DescriptionsProps } from "antd";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useOrigin } from "../../lib/origin";
import { visible } from "../../lib/rawText";
import { toneOfLog } from "../../lib/states";
import { useLink } from "../../lib/tenant";
import { isParent, type Log } from "../../lib/taskLog";
import { firstNumber } from "../../lib/xxljob";
import { Moment } from "../../parts/Moment";
import { Reason } from "../../parts/Reason";
import { LogStatus } from "../../parts/Tags";
import type { useNames } from "./names";
import { Attempts, Duration, Lateness, Trigger, REASONS } from "./Words";

/** Why the run is where it is, what the node says, and what to do. Nothing when there is nothing to add to the state. */
export function Why({ log }: { log: Log }) {
  const { t } = useTranslation("logs");
  if (log.reason === "" && log.message === "") return null;
  const known = REASONS.find((word) => word === log.reason);
  const tone = toneOfLog(log.status);
  return (
    <Alert
      type={tone === "bad" ? "error" : tone === "odd" ? "warning" : "info"}
      showIcon
      title={<Reason reason={log.reason} />}
      description={
        <Flex vertical gap={4}>
          {log.message !== "" && (
            <bdi className="log-message mono" aria-label={t("message")}>
              {visible(log.message)}
            </bdi>
          )}
          {known !== undefined && (
            <span>
              <strong>{t("todo")}:</strong> {t(`advice.${known}`)}
            </span>
          )}
        </Flex>
      }
    />
  );
}

function Id({ id, name }: { id: string | null | undefined; name?: string }) {
  if (id == null) return <>–</>;
  return (
    <Typography.Text copyable={{ text: id }}>
      <bdi>{name ?? id}</bdi>
    </Typography.Text>
  );
}

interface Properties {
  log: Log;
  names: ReturnType<typeof useNames>;
  zone: string | undefined;
  taskZone: string | undefined;
  /** The handler, where the task is still the one that it was. */
  handler: string | undefined;
}

/** The executor by its address: by that which the log has kept, where it is gone. */
function addressOf({ executor, attempts }: Log, names: Properties["names"]): string | undefined {
  if (executor == null) return undefined;
  const kept = attempts?.findLast((attempt) => attempt.executor === executor)?.executor_address;
  return kept?.replace(/^https?:\/\//, "") ?? names.executor(executor);
}

export function Facts({ log, names, zone, taskZone, handler }: Properties) {
  const { t } = useTranslation("logs");
  const { t: common } = useTranslation();
  const link = useLink();
  const when = (at: number | null | undefined) => <Moment at={at} zone={zone} taskZone={taskZone} exactness="millisecond" />;
  const items: DescriptionsProps["items"] = [
    { key: "status", label: common("status"), children: <LogStatus status={log.status} /> },
    { key: "fire", label: t("fire_time"), children: when(log.fire_time) },
    { key: "due", label: t("due_time"), children: when(log.due_time) },
    { key: "late", label: t("lateness"), children: <Lateness log={log} /> },
    { key: "ran", label: t("duration"), children: <Duration log={log} /> },
    { key: "attempts", label: t("attempts"), children: <Attempts log={log} /> },
    { key: "trigger", label: t("trigger"), children: <Trigger trigger={log.trigger} /> },
    { key: "executor", label: common("executor"), children: <Id id={log.executor} name={addressOf(log, names)} /> },
    { key: "node", label: common("node"), children: log.node == null ? "–" : <bdi>{names.node(log.node)}</bdi> },
    { key: "priority", label: t("priority"), children: log.priority },
    { key: "revision", label: t("revision"), children: log.revision },
    { key: "id", label: common("id"), children: <Id id={log.id} /> },
    { key: "tenant", label: common("tenant"), children: <bdi>{log.tenant}</bdi> },
  ];
  const plainItems = usePlainFacts(log, names, handler);
  if (log.parent != null) {
    items.push({
      key: "parent",
      label: t("part_of"),
      children: (
        <span>
          {t("shard_of", { index: log.shard_index, total: log.shard_total })} · <Link to={link(`/logs/${log.parent}`)}>{t("parent_run", { id: log.parent })}</Link>
        </span>
      ),
    });
  }
  items.push(...plainItems);
  return <Descriptions size="small" bordered column={{ xs: 1, sm: 1, md: 2, xl: 3 }} items={items} />;
}

/** What an executor of xxl-job knows the run by: what stands in its log, and what its handler is given. */
function usePlainFacts(log: Log, names: Properties["names"], handler: string | undefined): NonNullable<DescriptionsProps["items"]> {
  const { t } = useTranslation("xxljob");
  const isPlain = names.isPlain(log);
  const origin = useOrigin(log.tenant, log.task, isPlain);
  if (!isPlain) return [];
  const items: NonNullable<DescriptionsProps["items"]> = [
    { key: "handler", label: t("task.handler"), children: handler === undefined ? "–" : <bdi className="mono">{handler}</bdi> },
    { key: "job", label: t("task.number"), children: origin?.number == null ? "–" : <Id id={String(origin.number)} /> },
  ];
  // A run that has shards is not sent itself: they are.
  if (isParent(log)) return items;
  const number = log.attempt > 1 ? undefined : firstNumber(log.id);
  return [...items, { key: "number", label: t("log.number"), children: number === undefined ? <span className="soft">{t("log.number_later")}</span> : <Id id={number} /> }];
}
