/** One app: what it may do, its keys, its door for executors of xxl-job, its executors. */
import { Button, Card, Flex } from "antd";
import { useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Link, useNavigate, useParams } from "react-router";
import { $api, client, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { Waiting } from "../../parts/Waiting";
import { useLink } from "../../lib/tenant";
import { Confirm } from "../../parts/Confirm";
import { Failure } from "../../parts/Failure";
import { Moment } from "../../parts/Moment";
import { Page } from "../../parts/Page";
import { useAction } from "../../parts/useAction";
import { AppExecutors } from "./AppExecutors";
import { Door } from "./Door";
import { EditApp } from "./EditApp";
import { Keys } from "./Keys";
import { signKey } from "./sign";

export default function AppDetail() {
  const { t } = useTranslation();
  const { id = "" } = useParams();
  const { data, error, isPending, refetch } = $api.useQuery("get", "/apps/{id}", { params: { path: { id } } });
  const failure = <Failure error={error} again={() => void refetch()} />;
  // What was opened for one app is not for the next.
  if (data !== undefined) return <Detail key={id} app={data} failure={failure} />;
  return <Page title={t("app")}>{isPending ? <Waiting /> : failure}</Page>;
}

function Detail({ app, failure }: { app: Schema<"App">; failure: ReactNode }) {
  const { t } = useTranslation();
  const { t: own } = useTranslation("executors");
  const { may } = useSession();
  const link = useLink();
  const scope = { tenant: app.tenant, app: app.id };
  return (
    <Page
      title={app.name}
      subtitle={
        <>
          <Link to={link("/apps", { tenant: app.tenant })}>{t("pages.apps")}</Link>
          {` · ${t("tenant")} ${app.tenant}`}
        </>
      }
      actions={
        <>
          {may("tasks.read", scope) && <Link to={link("/tasks", { tenant: app.tenant, app: app.name })}>{own("apps.show_tasks")}</Link>}
          {may("task_logs.read", scope) && <Link to={link("/logs", { tenant: app.tenant, app: app.id })}>{own("apps.show_logs")}</Link>}
          {may("apps.delete", scope) && <DeleteApp app={app} />}
        </>
      }
    >
      {failure}
      <About app={app} />
      {may("keys.read", scope) && <Keys app={app} />}
      {may("keys.read", scope) && <Door app={app} />}
      {may("executors.read", scope) && <AppExecutors app={app} />}
    </Page>
  );
}

function About({ app }: { app: Schema<"App"> }) {
  const { t } = useTranslation();
  const { t: own } = useTranslation("executors");
  const { may } = useSession();
  const [isOpen, setIsOpen] = useState(false);
  const sign = signKey(app.sign_method);
  return (
    <Card
      size="small"
      title={<h2 className="card-title">{own("apps.limits")}</h2>}
      extra={may("apps.edit", { tenant: app.tenant, app: app.id }) && <Button onClick={() => setIsOpen(true)}>{t("edit")}</Button>}
    >
      <dl className="facts">
        <dt>{t("description")}</dt>
        <dd>{app.description === "" ? "–" : app.description}</dd>
        <dt>{own("apps.max_concurrent")}</dt>
        <dd>{app.max_concurrent === 0 ? t("unlimited") : app.max_concurrent}</dd>
        <dt>{own("apps.sign_method")}</dt>
        <dd>
          {app.sign_method === "" ? own("apps.sign_any") : app.sign_method}
          {sign !== undefined && <div className="soft">{own(`apps.sign_help.${sign}`)}</div>}
        </dd>
        <dt>{t("created_at")}</dt>
        <dd>
          <Moment at={app.created_at} />
        </dd>
        <dt>{t("id")}</dt>
        <dd className="mono">{app.id}</dd>
      </dl>
      {isOpen && <EditApp app={app} onClose={() => setIsOpen(false)} />}
    </Card>
  );
}

function DeleteApp({ app }: { app: Schema<"App"> }) {
  const { t: own } = useTranslation("executors");
  const { run } = useAction();
  const link = useLink();
  const navigate = useNavigate();
  const remove = () =>
    run(() => client.DELETE("/apps/{id}", { params: { path: { id: app.id } } }), {
      done: own("apps.deleted"),
      then: () => void navigate(link("/apps")),
    });
  return (
    <Flex>
      <Confirm
        label={own("apps.delete")}
        question={own("apps.delete_question", { name: app.name })}
        consequence={own("apps.delete_consequence")}
        typed={app.name}
        onConfirm={remove}
      />
    </Flex>
  );
}
