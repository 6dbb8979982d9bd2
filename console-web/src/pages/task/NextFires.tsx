/** The coming fires of a task: those already written with their state, those to come, and what is skipped and why. */
import { Button, Empty, Flex, Switch, Typography } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { $api, client, type Schema } from "../../api/client";
import { useNow } from "../../lib/now";
import { instant, offset, viewerZone } from "../../lib/time";
import { hasOnlyBeenTold } from "../../lib/taskLog";
import { useLink } from "../../lib/tenant";
import { Confirm } from "../../parts/Confirm";
import { Failure } from "../../parts/Failure";
import { Moment } from "../../parts/Moment";
import { Placeholder } from "../../parts/Placeholder";
import { LogStatus } from "../../parts/Tags";
import { useAction } from "../../parts/useAction";
import { useTaskMay } from "../tasks/useTaskMay";

const FIRES = 10;
/** How far ahead runs are written, ms. */
const WRITTEN_AHEAD_MS = 180_000;
/** Fires pass without a change of the task: they are asked for, ms. */
const LOOK_MS = 5_000;
/** The window of written runs moves in steps, so that its question is asked again only then, ms. */
const STEP_MS = 10_000;

type Preview = Schema<"Preview">;

function Skipped({ item, zone }: { item: Preview; zone: string }) {
  const { t } = useTranslation("task");
  if (item.kind !== "skipped" || item.reason == null) return null;
  return (
    <Typography.Text type="secondary">
      {item.count > 1 ? t("fires.skipped_many", { count: item.count, last: instant(item.last, zone) }) : t("fires.skipped")}
      {": "}
      {t(`fires.reason.${item.reason}`)}
    </Typography.Text>
  );
}

function Note({ item, changesOffset, zone }: { item: Preview; changesOffset: boolean; zone: string }) {
  const { t } = useTranslation("task");
  const notes: string[] = [];
  if (item.note?.what === "after_gap") notes.push(t("fires.after_gap"));
  if (item.note?.what === "moved_from") notes.push(t("fires.moved_from", { day: item.note.day }));
  if (item.note?.what === "moved_to") notes.push(t("fires.moved_to", { day: item.note.day }));
  if (item.note?.what === "postponed") notes.push(t("fires.postponed"));
  if (changesOffset) notes.push(t("fires.offset", { offset: offset(item.fire_time, zone) }));
  return notes.length === 0 ? null : <Typography.Text type="warning">{notes.join(" ")}</Typography.Text>;
}

/** A plain button: it is in each line, and most of what it does can be undone. */
const QUIET = { size: "small", danger: false } as const;

/** The instant as its row shows it; another zone than the viewer's is named. */
function named(at: number, zone: string): string {
  return zone === viewerZone() ? instant(at, zone) : `${instant(at, zone)} (${zone})`;
}

/** Cancels a run that is written; one that no executor has yet can be let come again. */
function CancelWritten({ task, log, zone }: { task: Schema<"Task">; log: Schema<"TaskLog">; zone: string }) {
  const { t } = useTranslation("task");
  const { run } = useAction();
  const isFinal = log.status === "dispatched" || task.schedule === "fixed_delay";
  const cancel = () => client.POST("/task-logs/{id}/cancel", { params: { path: { id: log.id } } });
  return (
    <Confirm
      label={t("fires.cancel")}
      question={t("fires.cancel_question", { at: named(log.fire_time, zone) })}
      consequence={t(isFinal ? "fires.cancel_consequence" : "fires.cancel_consequence_for_now")}
      danger={isFinal}
      button={QUIET}
      onConfirm={() => run(cancel, { done: ({ response }) => t(hasOnlyBeenTold(response) ? "fires.told" : "fires.cancelled") })}
    />
  );
}

/** Skips a fire whose run is not written yet. */
function SkipAhead({ task, at, zone }: { task: string; at: number; zone: string }) {
  const { t } = useTranslation("task");
  const { run } = useAction();
  const skip = () => client.POST("/tasks/{id}/skip", { params: { path: { id: task } }, body: { fire_time: at } });
  return (
    <Confirm
      label={t("fires.cancel")}
      question={t("fires.cancel_question", { at: named(at, zone) })}
      consequence={t("fires.skip_consequence")}
      danger={false}
      button={QUIET}
      onConfirm={() => run(skip, { done: ({ response }) => t(hasOnlyBeenTold(response) ? "fires.told" : "fires.cancelled") })}
    />
  );
}

/** Restores a skipped fire. */
function RestoreFire({ task, at }: { task: string; at: number }) {
  const { t } = useTranslation("task");
  const { run, busy } = useAction();
  const restore = () => client.POST("/tasks/{id}/restore", { params: { path: { id: task } }, body: { fire_time: at } });
  return (
    <Button size="small" loading={busy} onClick={() => void run(restore, { done: t("fires.restored") })}>
      {t("fires.restore")}
    </Button>
  );
}

/** The actions for one line of the list that the user may take. */
function FireAction({ task, item, log, zone }: { task: Schema<"Task">; item: Preview; log: Schema<"TaskLog"> | undefined; zone: string }) {
  if (item.kind === "skipped") return item.reason === "cancelled_manually" ? <RestoreFire task={task.id} at={item.fire_time} /> : null;
  if (log !== undefined) return ["init", "queued", "dispatched"].includes(log.status) ? <CancelWritten task={task} log={log} zone={zone} /> : null;
  return task.schedule === "fixed_delay" ? null : <SkipAhead task={task.id} at={item.fire_time} zone={zone} />;
}

/** Runs of the task that are written and not due yet, by fire time. */
function useWritten(task: string): Map<number, Schema<"TaskLog">> {
  const from = Math.floor(useNow(STEP_MS) / STEP_MS) * STEP_MS;
  const query = { task, from, until: from + WRITTEN_AHEAD_MS + STEP_MS, order: "oldest" as const, limit: 200 };
  const { data } = $api.useQuery("get", "/task-logs", { params: { query } }, { placeholderData: (last) => last });
  return new Map(data?.items.filter((log) => log.parent == null).map((log) => [log.fire_time, log]) ?? []);
}

export function NextFires({ task }: { task: Schema<"Task"> }) {
  const { t } = useTranslation(["task", "common"]);
  const may = useTaskMay(task.tenant, task.app);
  const link = useLink();
  const [count, setCount] = useState(FIRES);
  const [inTaskZone, setInTaskZone] = useState(false);
  const written = useWritten(task.id);
  const preview = $api.useQuery("get", "/tasks/{id}/preview", { params: { path: { id: task.id }, query: { count } } }, {
    enabled: task.state === "started",
    refetchInterval: LOOK_MS,
    placeholderData: (last) => last,
  });
  const now = useNow(1_000);
  const zone = inTaskZone ? task.time_zone : viewerZone();
  if (task.state !== "started") return <Empty image={Empty.PRESENTED_IMAGE_SIMPLE} description={t(task.state === "paused" ? "fires.paused" : "fires.stopped")} />;
  const failure = <Failure error={preview.error} again={() => void preview.refetch()} />;
  if (preview.data === undefined) return preview.error === null ? <Placeholder /> : failure;
  const items = preview.data.items.filter((item) => item.kind === "skipped" || item.due_time > now - 1_000);
  // They have all passed: the next ones are on their way.
  if (items.length === 0 && preview.data.items.length > 0) return preview.error === null ? <Placeholder /> : failure;
  if (items.length === 0) return <Empty image={Empty.PRESENTED_IMAGE_SIMPLE} description={t(task.schedule === "none" ? "fires.none_by_itself" : "fires.none")} />;
  return (
    <Flex vertical gap="small">
      {failure}
      {task.time_zone !== viewerZone() && (
        <label className="zone-switch">
          <Switch size="small" checked={inTaskZone} onChange={setInTaskZone} aria-label={t("common:show_task_zone", { zone: task.time_zone })} />{" "}
          {t("common:show_task_zone", { zone: task.time_zone })}
        </label>
      )}
      <ul className="fires">
        {items.map((item, index) => {
          const log = written.get(item.fire_time);
          const before = items[index - 1];
          const changesOffset = before !== undefined && offset(before.fire_time, task.time_zone) !== offset(item.fire_time, task.time_zone);
          return (
            <li key={`${item.kind} ${item.fire_time}`} className={item.kind === "skipped" ? "fire fire-skipped" : "fire"}>
              <div>
                <Flex gap="small" align="center" wrap>
                  <Moment at={item.fire_time} zone={zone} taskZone={task.time_zone} />
                  {log !== undefined && (
                    <Link to={link(`/logs/${log.id}`)}>
                      <LogStatus status={log.status} />
                    </Link>
                  )}
                  <Skipped item={item} zone={zone} />
                </Flex>
                <Note item={item} changesOffset={changesOffset} zone={task.time_zone} />
              </div>
              {may("task_logs.cancel") && <FireAction task={task} item={item} log={log} zone={zone} />}
            </li>
          );
        })}
      </ul>
      {preview.data.items.length >= count && count < 100 && (
        <Button type="link" onClick={() => setCount(Math.min(100, count + 2 * FIRES))}>
          {t("common:more")}
        </Button>
      )}
    </Flex>
  );
}
