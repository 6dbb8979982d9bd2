/** What the list shows of a task: in columns, and as a card on a narrow screen. */
import { Flex, Tooltip, Typography, type TableProps } from "antd";
import type { TFunction } from "i18next";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { Schema } from "../../api/client";
import { useNow } from "../../lib/now";
import { useLink } from "../../lib/tenant";
import { Moment } from "../../parts/Moment";
import { TaskState } from "../../parts/Tags";
import { ScheduleWords } from "./ScheduleWords";
import { TaskActions } from "./TaskActions";

type Task = Schema<"Task">;

function Name({ task }: { task: Task }) {
  const link = useLink();
  return (
    <Link to={link(`/tasks/${task.id}`)} className="task-name">
      {task.name}
    </Link>
  );
}

/** The state, and of a paused task why and since when. */
function State({ task }: { task: Task }) {
  const note = task.pause_note ?? "";
  return (
    <Flex vertical gap={2} align="start">
      <TaskState state={task.state} />
      {note !== "" && (
        <Tooltip title={note}>
          <Typography.Text type="secondary" ellipsis className="pause-note">
            {note}
          </Typography.Text>
        </Tooltip>
      )}
    </Flex>
  );
}

function NextFire({ task }: { task: Task }) {
  const { t } = useTranslation("tasks");
  const now = useNow(1_000);
  const at = task.next_fire_at ?? 0;
  if (task.state !== "started" || task.schedule === "none") return <>–</>;
  if (at === 0) return <>{t("list.no_fire")}</>;
  if (at <= now) return <>{t("list.about_now")}</>;
  return <Moment at={at} relative taskZone={task.time_zone} />;
}

function Failures({ task }: { task: Task }) {
  return <span className={task.failures_in_row > 0 ? "number bad-text" : "number"}>{task.failures_in_row}</span>;
}

interface Words {
  t: TFunction<"tasks">;
  common: TFunction;
  /** Whether tasks of several tenants stand beside each other. */
  withTenant: boolean;
}

function appOf(task: Task, withTenant: boolean): string {
  return withTenant ? `${task.tenant} / ${task.app}` : task.app;
}

export function taskColumns({ t, common, withTenant }: Words): NonNullable<TableProps<Task>["columns"]> {
  return [
    { title: common("name"), key: "name", width: 190, render: (_, task) => <Name task={task} /> },
    { title: common("app"), key: "app", width: 120, render: (_, task) => appOf(task, withTenant) },
    { title: t("list.fires"), key: "schedule", width: 230, render: (_, task) => <ScheduleWords task={task} /> },
    { title: common("status"), key: "state", width: 130, render: (_, task) => <State task={task} /> },
    { title: t("list.next_fire"), key: "next", width: 130, render: (_, task) => <NextFire task={task} /> },
    { title: t("list.failures"), key: "failures", width: 90, align: "right", render: (_, task) => <Failures task={task} /> },
    { title: common("actions"), key: "actions", width: 76, align: "center", fixed: "right", render: (_, task) => <TaskActions task={task} compact /> },
  ];
}

export function TaskCard({ task, withTenant }: { task: Task; withTenant: boolean }) {
  const { t } = useTranslation("tasks");
  return (
    <Flex vertical gap={4}>
      <Flex justify="space-between" align="start" gap="small">
        <Name task={task} />
        <TaskActions task={task} compact />
      </Flex>
      <Typography.Text type="secondary">{appOf(task, withTenant)}</Typography.Text>
      <ScheduleWords task={task} />
      <State task={task} />
      <Flex justify="space-between" gap="small" wrap>
        <span>
          {t("list.next_fire")}: <NextFire task={task} />
        </span>
        <span>
          {t("list.failures")}: <Failures task={task} />
        </span>
      </Flex>
    </Flex>
  );
}
