/** Everything that is known of one executor, and what a person may say of it. */
import { Alert, Drawer, Flex, Tag, Typography } from "antd";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { $api, Problem, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { HEARTBEATS_MS } from "../../lib/backOff";
import { useLink } from "../../lib/tenant";
import { libraryOf } from "../../lib/xxljob";
import { Failure } from "../../parts/Failure";
import { Moment } from "../../parts/Moment";
import { Waiting } from "../../parts/Waiting";
import { Load } from "./Load";
import { RoutingForm } from "./RoutingForm";
import { State } from "./State";

export function ExecutorDrawer({ id, onClose }: { id: string; onClose: () => void }) {
  const { t } = useTranslation();
  const { t: own } = useTranslation("executors");
  const { data, error, isPending, refetch } = $api.useQuery("get", "/executors/{id}", { params: { path: { id } } }, { refetchInterval: HEARTBEATS_MS });
  const unknown: unknown = error;
  const isGone = unknown instanceof Problem && unknown.status === 404;
  const title = data === undefined ? t("executor") : own("executors.details", { address: data.address });
  return (
    <Drawer open title={title} size="large" onClose={onClose}>
      {isPending && <Waiting />}
      {isGone ? (
        <Flex vertical gap="middle">
          <Alert type="info" showIcon title={own("executors.gone")} description={own("executors.gone_help")} />
          <LogsOf id={id} />
        </Flex>
      ) : (
        <Failure error={unknown} again={() => void refetch()} />
      )}
      {data !== undefined && !isGone && <Detail executor={data} />}
    </Drawer>
  );
}

function LogsOf({ id, tenant }: { id: string; tenant?: string }) {
  const { t: own } = useTranslation("executors");
  const { may } = useSession();
  const link = useLink();
  if (!may("task_logs.read", { tenant })) return null;
  return <Link to={link("/logs", { executor: id, ...(tenant === undefined ? {} : { tenant }) })}>{own("executors.show_logs")}</Link>;
}

function Words({ of }: { of: string[] }) {
  const { t } = useTranslation();
  if (of.length === 0) return <>{t("none")}</>;
  return (
    <Flex gap={4} wrap>
      {of.map((word) => (
        <Tag key={word}>{word}</Tag>
      ))}
    </Flex>
  );
}

/** That it is an executor of xxl-job, and with what it is made. */
function Library({ of }: { of: Schema<"Executor"> }) {
  const { t } = useTranslation("xxljob");
  return (
    <>
      <dt>{t("executors.protocol")}</dt>
      <dd>{t("executors.speaks", { library: t(`library.${libraryOf(of.version)}`) })}</dd>
    </>
  );
}

function Detail({ executor }: { executor: Schema<"Executor"> }) {
  const { t } = useTranslation();
  const { t: xxljob } = useTranslation("xxljob");
  const { t: own } = useTranslation("executors");
  const { may } = useSession();
  const link = useLink();
  const scope = { tenant: executor.tenant, app: executor.app_id };
  return (
    <Flex vertical gap="large">
      <Flex gap="middle" wrap>
        <LogsOf id={executor.id} tenant={executor.tenant} />
        {may("apps.read", scope) && <Link to={link(`/apps/${executor.app_id}`)}>{own("executors.show_app")}</Link>}
      </Flex>
      <dl className="facts">
        <dt>{t("status")}</dt>
        <dd>
          <State of={executor} />
        </dd>
        <dt>{t("tenant")}</dt>
        <dd>{executor.tenant}</dd>
        <dt>{t("app")}</dt>
        <dd>{executor.app}</dd>
        <dt>{own("executors.load")}</dt>
        <dd>
          <Load of={executor} />
          {!executor.plain && <div className="soft">{own("executors.load_numbers", executor)}</div>}
        </dd>
        {executor.plain && <Library of={executor} />}
        <dt>{executor.plain ? xxljob("executors.agent") : own("executors.version")}</dt>
        <dd>{executor.version === "" ? "–" : executor.version}</dd>
        <dt>{own("executors.heartbeat")}</dt>
        <dd>
          <Moment at={executor.heartbeat_at} relative />
        </dd>
        <dt>{own("executors.handlers")}</dt>
        <dd>
          {executor.plain ? xxljob("executors.handlers") : <Words of={executor.handlers} />}
        </dd>
        <dt>{own("executors.tags")}</dt>
        <dd>
          <Words of={executor.tags} />
        </dd>
        <dt>{own("executors.weight")}</dt>
        <dd>{executor.weight}</dd>
        <dt>{own("executors.note")}</dt>
        <dd>{executor.note === "" ? "–" : executor.note}</dd>
        <dt>{t("id")}</dt>
        <dd>
          <span className="mono">{executor.id}</span>
          <div className="soft">{own("executors.id_help")}</div>
        </dd>
      </dl>
      {may("executors.edit", scope) && (
        <section>
          <Typography.Title level={2} className="section-title">
            {own("executors.change")}
          </Typography.Title>
          <Typography.Paragraph type="secondary">{own("executors.change_help")}</Typography.Paragraph>
          <RoutingForm key={executor.revision} executor={executor} />
        </section>
      )}
    </Flex>
  );
}
