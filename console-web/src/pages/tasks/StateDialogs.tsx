/** Start, stop and delete a task: each says first what will happen to what waits and what runs. */
import { Typography } from "antd";
import { useTranslation } from "react-i18next";
import { client, ifMatch } from "../../api/client";
import { ConfirmModal } from "../../parts/Confirm";
import { useAction } from "../../parts/useAction";
import type { DialogProperties } from "./PauseDialog";
import { useTold } from "./useTold";

export function StartDialog({ task, open, onClose }: DialogProperties) {
  const { t } = useTranslation("tasks");
  const { run } = useAction();
  const told = useTold();
  const start = () =>
    run(async () => (await client.POST("/tasks/{id}/start", { params: { path: { id: task.id } } })).data, {
      done: t("start.done", { name: task.name }),
      then: (changed) => changed && told(changed),
    });
  return (
    <ConfirmModal
      open={open}
      onClose={onClose}
      label={t("start.button")}
      question={t("start.question", { name: task.name })}
      danger={false}
      onConfirm={start}
      consequence={
        <>
          {task.pause_note !== null && task.pause_note !== undefined && (
            <Typography.Text>{t("start.paused_because", { note: task.pause_note })}</Typography.Text>
          )}
          <Typography.Text>{t(task.state === "paused" ? "start.consequence_paused" : "start.consequence")}</Typography.Text>
        </>
      }
    />
  );
}

export function StopDialog({ task, open, onClose }: DialogProperties) {
  const { t } = useTranslation("tasks");
  const { run } = useAction();
  const told = useTold();
  const stop = () =>
    run(async () => (await client.POST("/tasks/{id}/stop", { params: { path: { id: task.id } } })).data, {
      done: t("stop.done", { name: task.name }),
      then: (changed) => changed && told(changed),
    });
  return (
    <ConfirmModal
      open={open}
      onClose={onClose}
      label={t("stop.button")}
      question={t("stop.question", { name: task.name })}
      danger={false}
      onConfirm={stop}
      consequence={<Typography.Text>{t("stop.consequence")}</Typography.Text>}
    />
  );
}

export function DeleteDialog({ task, open, onClose, onDeleted }: DialogProperties & { onDeleted?: () => void }) {
  const { t } = useTranslation("tasks");
  const { t: common } = useTranslation();
  const { run } = useAction();
  const told = useTold();
  const remove = () =>
    run(
      async () => (await client.DELETE("/tasks/{id}", { params: { path: { id: task.id }, header: ifMatch(task.revision) } })).data,
      {
        done: t("delete.done", { name: task.name }),
        then: (changed) => {
          if (changed !== undefined) told(changed);
          onDeleted?.();
        },
      },
    );
  return (
    <ConfirmModal
      open={open}
      onClose={onClose}
      label={common("delete")}
      question={t("delete.question", { name: task.name })}
      typed={task.name}
      onConfirm={remove}
      consequence={<Typography.Text>{t("delete.consequence")}</Typography.Text>}
    />
  );
}
