/** One task: how it does, what comes next, what it is. */
import { Alert, Card, Flex, Typography } from "antd";
import { lazy, Suspense } from "react";
import { useTranslation } from "react-i18next";
import { Link, useParams } from "react-router";
import { $api, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { Waiting } from "../../parts/Waiting";
import { useFilters } from "../../lib/search";
import { useLink } from "../../lib/tenant";
import { Failure } from "../../parts/Failure";
import { Moment } from "../../parts/Moment";
import { Page } from "../../parts/Page";
import { Sections } from "../../parts/Sections";
import { TaskState } from "../../parts/Tags";
import { Backfills } from "../tasks/Backfills";
import { TaskActions } from "../tasks/TaskActions";
import { useTaskMay } from "../tasks/useTaskMay";
import { Definition } from "./Definition";
import { NextFires } from "./NextFires";
import { PlainTask } from "./PlainTask";
import { RunStrip } from "./RunStrip";
import { Neighbours } from "./Neighbours";

const Figures = lazy(() => import("./Figures").then((module) => ({ default: module.Figures })));
const History = lazy(() => import("../tasks/History").then((module) => ({ default: module.History })));

function Subtitle({ task }: { task: Schema<"Task"> }) {
  const { t } = useTranslation(["task", "common"]);
  return (
    <Flex gap="small" wrap align="center" component="span">
      <TaskState state={task.state} />
      <span>
        {task.tenant} / {task.app}
      </span>
      {task.next_fire_at != null && task.state === "started" && (
        <span>
          {t("next")} <Moment at={task.next_fire_at} relative />
        </span>
      )}
      {task.failures_in_row > 0 && <Typography.Text type="danger">{t("failures_in_row", { count: task.failures_in_row })}</Typography.Text>}
    </Flex>
  );
}

function Parts({ task }: { task: Schema<"Task"> }) {
  const { t } = useTranslation("task");
  const { mayWhole } = useSession();
  const may = useTaskMay(task.tenant, task.app);
  const { filters, set } = useFilters(["part"]);
  const parts = [
    ...(may("statistics.read") ? [{ key: "figures", label: t("parts.figures"), children: <Figures task={task.id} /> }] : []),
    { key: "definition", label: t("parts.definition"), children: <Definition task={task} /> },
    { key: "graph", label: t("parts.graph"), children: <Neighbours task={task} /> },
    ...(may("backfills.read")
      ? [{ key: "backfills", label: t("parts.backfills"), children: <Backfills task={task} mayCancel={may("backfills.cancel")} /> }]
      : []),
    ...(mayWhole("audit.read", task.tenant) ? [{ key: "history", label: t("parts.history"), children: <History task={task} /> }] : []),
  ];
  return (
    <Card size="small">
      <Suspense fallback={<Waiting />}>
        <Sections
          label={t("parts.label")}
          active={parts.find((part) => part.key === filters.part)?.key ?? parts[0]?.key ?? ""}
          onChange={(part) => set({ part })}
          items={parts}
        />
      </Suspense>
    </Card>
  );
}

/** Next fire and failures in a row pass without a change of the task: they are asked for, ms. */
const LOOK_MS = 15_000;

export default function TaskDetail() {
  const { id = "" } = useParams();
  // What was chosen or typed for one task is not for the next.
  return <Shown key={id} id={id} />;
}

function Shown({ id }: { id: string }) {
  const { t } = useTranslation(["task", "common"]);
  const { data: task, error, refetch, isPending } = $api.useQuery("get", "/tasks/{id}", { params: { path: { id } } }, { refetchInterval: LOOK_MS });
  if (task === undefined) {
    return (
      <Page title={t("common:task")}>
        {isPending && <Waiting />}
        <Failure error={error} again={() => void refetch()} />
      </Page>
    );
  }
  return (
    <Page title={task.name} subtitle={<Subtitle task={task} />} actions={<TaskActions task={task} />}>
      <Failure error={error} again={() => void refetch()} />
      {task.description !== "" && <Typography.Paragraph className="task-description">{task.description}</Typography.Paragraph>}
      {task.state === "paused" && <Alert type="warning" showIcon title={t("paused")} description={<Paused task={task} />} />}
      {task.warnings.map((warning) => (
        <Alert key={warning} type="warning" showIcon title={t(`warning.${warning}`)} />
      ))}
      <div className="task-top">
        <LastRuns task={task} />
        <Card size="small" title={<h2 className="card-title">{t("fires.title")}</h2>} className="task-fires">
          <NextFires task={task} />
        </Card>
      </div>
      <PlainTask task={task} />
      <Parts task={task} />
    </Page>
  );
}

function LastRuns({ task }: { task: Schema<"Task"> }) {
  const { t } = useTranslation("task");
  const may = useTaskMay(task.tenant, task.app);
  const link = useLink();
  if (!may("task_logs.read")) return null;
  return (
    <Card
      size="small"
      title={<h2 className="card-title">{t("strip.title")}</h2>}
      extra={<Link to={link("/logs", { tenant: task.tenant, task: task.id })}>{t("strip.all")}</Link>}
      className="task-runs"
    >
      <RunStrip task={task.id} />
    </Card>
  );
}

function Paused({ task }: { task: Schema<"Task"> }) {
  return (
    <>
      <span className="failure-detail">{task.pause_note}</span> <Moment at={task.paused_at} />
    </>
  );
}
