/** What can be done to a run: take it back, stop it, do it again. */
import { ReloadOutlined } from "@ant-design/icons";
import { Alert, Typography } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { client } from "../../api/client";
import { useSession } from "../../api/session";
import { newKey } from "../../lib/once";
import { useLink } from "../../lib/tenant";
import { hasOnlyBeenTold, stopping, type Log } from "../../lib/taskLog";
import { Confirm } from "../../parts/Confirm";
import { useAction } from "../../parts/useAction";
import { RawText } from "./RawText";

/** Cancels a run that waits, or kills one that an executor has; nothing for one that has ended. */
export function StopRun({ log }: { log: Log }) {
  const { t } = useTranslation("logs");
  const { may } = useSession();
  const { run } = useAction();
  const way = stopping(log.status);
  if (!may("task_logs.cancel", { tenant: log.tenant, app: log.app }) || way === undefined || way === "waiting") return null;
  const stop = () =>
    run(() => client.POST("/task-logs/{id}/cancel", { params: { path: { id: log.id } } }), { done: ({ response }) => t(hasOnlyBeenTold(response) ? "kill_told" : "cancel_done") });
  return <Confirm label={t(`${way}_run`)} question={t(`${way}_question`)} consequence={t(`${way}_text`)} onConfirm={stop} />;
}

/** Starts another run with the same parameters; `onStarted` hears its id. */
export function RunAgain({ log, task, onStarted }: { log: Log; task: string; onStarted: (id: string) => void }) {
  const { t } = useTranslation("logs");
  const { may } = useSession();
  const { run } = useAction();
  // A second try after a lost answer starts no second run.
  const [key, setKey] = useState(newKey);
  if (!may("tasks.run", { tenant: log.tenant, app: log.app })) return null;
  const start = () =>
    run(
      () =>
        client.POST("/tasks/{id}/run", {
          params: { path: { id: log.task } },
          body: { at: null, delay_ms: null, idempotency_key: key, priority: null, ...(log.params == null ? {} : { params: log.params }) },
        }),
      {
        then: ({ data }) => {
          setKey(newKey());
          if (data !== undefined) onStarted(data.log);
        },
      },
    );
  return (
    <Confirm
      label={t("again")}
      question={t("again_question", { task })}
      consequence={log.params == null ? t("again_text_task") : t("again_text")}
      danger={false}
      button={{ icon: <ReloadOutlined aria-hidden /> }}
      onConfirm={start}
    >
      {log.params != null && <RawText text={log.params} label={t("parameters")} />}
    </Confirm>
  );
}

/** `RunAgain`, and where the new run is found. */
export function useStarted() {
  const { t } = useTranslation("logs");
  const link = useLink();
  const [started, setStarted] = useState<string>();
  const notice = started !== undefined && (
    <Alert
      // The notice of another run is another one, also after this one was closed.
      key={started}
      type="success"
      showIcon
      closable
      role="status"
      title={
        <>
          {t("again_started")} <Link to={link(`/logs/${started}`)}>{started}</Link>
        </>
      }
    />
  );
  return { notice, setStarted };
}

/** Says that a run was told to stop and has not yet. */
export function StoppingNotice({ log }: { log: Log }) {
  const { t } = useTranslation("logs");
  if (stopping(log.status) !== "waiting") return null;
  return <Alert type="warning" showIcon role="status" title={t("stopping_title")} description={<Typography.Text>{t("stopping_text")}</Typography.Text>} />;
}
