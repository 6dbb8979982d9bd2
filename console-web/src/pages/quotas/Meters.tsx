/** A tenant's quotas, each with what it bounds and what is used of it. */
import { Alert, Card, Flex, Typography } from "antd";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { Schema } from "../../api/client";
import { useLink } from "../../lib/tenant";
import { Moment } from "../../parts/Moment";
import { Meter } from "./Meter";

type Quotas = Schema<"TenantQuotas">;

function Kind({ title, help, children }: { title: string; help: string; children: ReactNode }) {
  return (
    <Card size="small" className="quota">
      <Flex vertical gap="small">
        <Typography.Title level={2} className="quota-title">
          {title}
        </Typography.Title>
        {children}
        <Typography.Text type="secondary">{help}</Typography.Text>
      </Flex>
    </Card>
  );
}

function Delayed({ tenant, used }: { tenant: string; used: Quotas["used"] }) {
  const { t } = useTranslation("admin");
  const link = useLink();
  if (used.delayed === 0) return <Typography.Text type="secondary">{t("quotas.none_delayed")}</Typography.Text>;
  return (
    <Alert
      type="warning"
      showIcon
      title={t("quotas.delayed", { count: used.delayed })}
      description={
        <>
          <div>
            {t("quotas.delayed_text")}
            <Moment at={used.delayed_until} />
          </div>
          <div>{t("quotas.delayed_help")}</div>
        </>
      }
      action={<Link to={link("/logs", { tenant, status: "init" })}>{t("quotas.show_runs")}</Link>}
    />
  );
}

export function Meters({ tenant, quotas }: { tenant: string; quotas: Quotas }) {
  const { t } = useTranslation("admin");
  const { used } = quotas;
  return (
    <Flex vertical gap="middle">
      <Delayed tenant={tenant} used={used} />
      <div className="quotas">
        <Kind title={t("quotas.max_tasks")} help={t("quotas.max_tasks_help")}>
          <Meter label={t("quotas.max_tasks")} used={used.tasks} bound={quotas.max_tasks} />
        </Kind>
        <Kind title={t("quotas.max_fires_per_minute")} help={t("quotas.max_fires_per_minute_help")}>
          <Meter label={t("quotas.max_fires_per_minute")} used={used.fires_last_minute} bound={quotas.max_fires_per_minute} onlyBounded />
        </Kind>
        <Kind title={t("quotas.max_concurrent")} help={t("quotas.max_concurrent_help")}>
          <Meter label={t("quotas.max_concurrent")} used={used.runs} bound={quotas.max_concurrent} />
        </Kind>
        <Kind title={t("quotas.retain_days")} help={t("quotas.retain_days_help")}>
          <span className="number">{quotas.retain_days === 0 ? t("quotas.default_days") : t("quotas.days", { days: quotas.retain_days })}</span>
        </Kind>
      </div>
    </Flex>
  );
}
