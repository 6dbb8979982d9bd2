/** The coming fires of a task: those already written with their state, those to come, and what is skipped and why. */
import { Button, Empty, Flex, Switch, Typography } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { $api, client, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { useNow } from "../../lib/now";
import { instant, offset, viewerZone } from "../../lib/time";
import { useLink } from "../../lib/tenant";
import { Confirm } from "../../parts/Confirm";
import { Failure } from "../../parts/Failure";
import { Moment } from "../../parts/Moment";
import { LogStatus } from "../../parts/Tags";
import { useAction } from "../../parts/useAction";

const FIRES = 10;
/** How far ahead runs are written, ms. */
const WRITTEN_AHEAD_MS = 180_000;
/** The window of written runs moves in steps, so that its question is asked again only then, ms. */
const STEP_MS = 10_000;

type Preview = Schema<"Preview">;

function Skipped({ item, zone }: { item: Preview; zone: string }) {
  const { t } = useTranslation("task");
  if (item.kind !== "skipped") return null;
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
  if (changesOffset) notes.push(t("fires.offset", { offset: offset(item.fire_time, zone) }));
  return notes.length === 0 ? null : <Typography.Text type="warning">{notes.join(" ")}</Typography.Text>;
}

function CancelWritten({ log }: { log: Schema<"TaskLog"> }) {
  const { t } = useTranslation("task");
  const { run } = useAction();
  return (
    <Confirm
      label={t("fires.cancel")}
      question={t("fires.cancel_question", { at: instant(log.fire_time, viewerZone()) })}
      consequence={t("fires.cancel_consequence")}
      button={{ size: "small" }}
      onConfirm={() => run(() => client.POST("/task-logs/{id}/cancel", { params: { path: { id: log.id } } }), { done: t("fires.cancelled") })}
    />
  );
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
  const { may } = useSession();
  const link = useLink();
  const [count, setCount] = useState(FIRES);
  const [inTaskZone, setInTaskZone] = useState(false);
  const written = useWritten(task.id);
  const preview = $api.useQuery("get", "/tasks/{id}/preview", { params: { path: { id: task.id }, query: { count } } }, { enabled: task.state === "started" });
  const now = useNow(1_000);
  const zone = inTaskZone ? task.time_zone : viewerZone();
  if (task.state !== "started") return <Empty image={Empty.PRESENTED_IMAGE_SIMPLE} description={t(task.state === "paused" ? "fires.paused" : "fires.stopped")} />;
  if (preview.data === undefined) return <Failure error={preview.error} again={() => void preview.refetch()} />;
  const items = preview.data.items.filter((item) => item.kind === "skipped" || item.due_time > now - 1_000);
  if (items.length === 0) return <Empty image={Empty.PRESENTED_IMAGE_SIMPLE} description={t(task.schedule === "none" ? "fires.none_by_itself" : "fires.none")} />;
  return (
    <Flex vertical gap="small">
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
          const mayCancel = log !== undefined && ["init", "queued", "dispatched"].includes(log.status) && may("task_logs.cancel", { tenant: task.tenant });
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
              {mayCancel && <CancelWritten log={log} />}
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
