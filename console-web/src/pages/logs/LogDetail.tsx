/** One run: what happened, why, what it was given, what it returned and logged, and what can be done. */
import { Button, Card, Spin, Typography } from "antd";
import { useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Link, useParams } from "react-router";
import { $api } from "../../api/client";
import { useSession } from "../../api/session";
import { hasEnded } from "../../lib/states";
import { useLink } from "../../lib/tenant";
import { isParent, type Log } from "../../lib/taskLog";
import { viewerZone } from "../../lib/time";
import { Failure } from "../../parts/Failure";
import { Page } from "../../parts/Page";
import { Facts, Why } from "./Facts";
import { RunAgain, StopRun, StoppingNotice, useStarted } from "./LogActions";
import { useNames } from "./names";
import { OutputPanel } from "./OutputPanel";
import { RawText } from "./RawText";
import { AllShards } from "./Shards";
import { Timeline } from "./Timeline";

/** A run that goes on longer than the stream of events watches tells nothing: its page asks, ms. */
const LOOK_MS = 2_000;

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Card size="small" title={<Typography.Title level={2}>{title}</Typography.Title>} className="log-part">
      {children}
    </Card>
  );
}

/** What it was given, and what it returned. */
function Texts({ log, taskParams }: { log: Log; taskParams: string | undefined }) {
  const { t } = useTranslation("logs");
  const params = log.params ?? taskParams;
  return (
    <div className="log-texts">
      <Part title={t("parameters")}>
        <Typography.Paragraph type="secondary">{t(log.params == null ? "task_parameters" : "own_parameters")}</Typography.Paragraph>
        {params === undefined || params === "" ? t("no_parameters") : <RawText text={params} label={t("parameters")} />}
      </Part>
      <Part title={t("result")}>
        {log.output !== "" && <RawText text={log.output} label={t("result")} />}
        {log.output === "" && t(hasEnded(log.status) ? "no_result" : "result_later")}
      </Part>
    </div>
  );
}

/** The zone to show times in, and the button that changes it; `undefined` is the viewer's. */
function useZone(taskZone: string | undefined) {
  const { t } = useTranslation();
  const [isTasks, setTasks] = useState(false);
  const differs = taskZone !== undefined && taskZone !== viewerZone();
  const button = differs && <Button onClick={() => setTasks(!isTasks)}>{isTasks ? t("show_my_zone") : t("show_task_zone", { zone: taskZone })}</Button>;
  return { zone: isTasks ? taskZone : undefined, button };
}

/** `failure`: that it could not be read again, if so. */
function Found({ log, failure }: { log: Log; failure: ReactNode }) {
  const { t } = useTranslation("logs");
  const { may } = useSession();
  const link = useLink();
  const names = useNames(log.tenant);
  // A deleted task leaves its logs: that it is not there is no failure of this page.
  const task = $api.useQuery("get", "/tasks/{id}", { params: { path: { id: log.task } } }, { enabled: may("tasks.read"), retry: false });
  const { zone, button } = useZone(task.data?.time_zone);
  const { notice, setStarted } = useStarted();
  const name = task.data?.name ?? names.task(log);
  return (
    <Page
      title={t("title", { id: log.id })}
      subtitle={
        <Link to={link(`/tasks/${log.task}`)}>
          <bdi>{name}</bdi>
        </Link>
      }
      actions={
        <>
          {button}
          <RunAgain log={log} task={name} onStarted={setStarted} />
          <StopRun log={log} />
        </>
      }
    >
      {failure}
      {notice}
      <StoppingNotice log={log} />
      <Why log={log} />
      <Facts log={log} names={names} zone={zone} taskZone={task.data?.time_zone} handler={task.data?.revision === log.revision ? task.data.handler : undefined} />
      <Part title={t("happened")}>
        <Timeline log={log} names={names} zone={zone} />
      </Part>
      {isParent(log) && (
        <Part title={t("shards")}>
          <AllShards parent={log} />
        </Part>
      )}
      {!isParent(log) && may("task_logs.output", { tenant: log.tenant, app: log.app }) && <OutputPanel key={log.id} log={log} />}
      <Texts log={log} taskParams={task.data?.revision === log.revision ? task.data.params : undefined} />
    </Page>
  );
}

export default function LogDetail() {
  const { t } = useTranslation();
  const { id = "" } = useParams();
  const { data, error, refetch } = $api.useQuery("get", "/task-logs/{id}", { params: { path: { id } } }, {
    refetchInterval: ({ state }) => (state.data === undefined || hasEnded(state.data.status) ? false : LOOK_MS),
  });
  const failure = <Failure error={error} again={() => void refetch()} />;
  if (data !== undefined) return <Found key={id} log={data} failure={failure} />;
  return <Page title={t("pages.logs")}>{error === null ? <Spin /> : failure}</Page>;
}
