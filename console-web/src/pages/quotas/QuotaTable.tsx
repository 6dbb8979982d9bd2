/** The quotas of all tenants that one may see; each row asks for its own, and only the rows in view are there. */
import { Flex, Spin, Typography, type TableProps } from "antd";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { $api, type Schema } from "../../api/client";
import { useSession } from "../../api/session";
import { useLink } from "../../lib/tenant";
import { wordsOf } from "../../parts/Failure";
import { BY_AFTER, List, itemsOf } from "../../parts/List";
import { Word } from "../../parts/Tags";
import { Meter } from "./Meter";
import { useQuotas } from "./useQuotas";

type Tenant = Schema<"Tenant">;
type Quotas = Schema<"TenantQuotas">;

/** One cell of a tenant's row; all cells share the tenant's one answer. */
function OfTenant({ tenant, children }: { tenant: string; children: (quotas: Quotas) => ReactNode }) {
  const { t } = useTranslation();
  const { data, error } = useQuotas(tenant);
  if (data !== undefined) return children(data);
  if (error === null) return <Spin size="small" />;
  return <Typography.Text type="danger">{wordsOf(error, t).title}</Typography.Text>;
}

function useCells() {
  const { t } = useTranslation("admin");
  return {
    tasks: (quotas: Quotas) => <Meter label={t("quotas.max_tasks")} used={quotas.used.tasks} bound={quotas.max_tasks} />,
    fires: (quotas: Quotas) => <Meter label={t("quotas.max_fires_per_minute")} used={quotas.used.fires_last_minute} bound={quotas.max_fires_per_minute} onlyBounded />,
    runs: (quotas: Quotas) => <Meter label={t("quotas.max_concurrent")} used={quotas.used.runs} bound={quotas.max_concurrent} />,
    days: (quotas: Quotas) => <>{quotas.retain_days === 0 ? t("quotas.default_days") : t("quotas.days", { days: quotas.retain_days })}</>,
    delayed: (quotas: Quotas) => (quotas.used.delayed === 0 ? <>0</> : <Word tone="odd">{quotas.used.delayed.toLocaleString("en-US")}</Word>),
  };
}

export function QuotaTable() {
  const { t } = useTranslation("admin");
  const common = useTranslation();
  const { may } = useSession();
  const link = useLink();
  const pages = $api.useInfiniteQuery("get", "/tenants", { params: { query: { limit: 25 } } }, BY_AFTER);
  const cells = useCells();
  const name = (tenant: Tenant) => <Link to={link("/quotas", { tenant: tenant.name })}>{tenant.name}</Link>;
  const column = (title: string, key: keyof typeof cells, width: number) => ({
    title,
    key,
    width,
    render: (_: unknown, tenant: Tenant) => <OfTenant tenant={tenant.name}>{cells[key]}</OfTenant>,
  });
  const columns: NonNullable<TableProps<Tenant>["columns"]> = [
    { title: common.t("tenant"), key: "name", width: 160, render: (_, tenant) => name(tenant) },
    column(t("quotas.max_tasks"), "tasks", 180),
    column(t("quotas.max_fires_per_minute"), "fires", 180),
    column(t("quotas.max_concurrent"), "runs", 180),
    column(t("quotas.retain_days"), "days", 150),
    column(t("quotas.delayed_column"), "delayed", 120),
  ];
  const rows = [
    ["max_tasks", "tasks"],
    ["max_fires_per_minute", "fires"],
    ["max_concurrent", "runs"],
    ["delayed_column", "delayed"],
  ] as const;
  return (
    <List<Tenant>
      label={common.t("pages.quotas")}
      pages={pages}
      items={itemsOf(pages).filter((tenant) => may("quotas.read", { tenant: tenant.name }))}
      rowKey={({ id }) => id}
      columns={columns}
      whenEmpty={t("quotas.empty")}
      card={(tenant) => (
        <Flex vertical gap="small">
          <strong>{name(tenant)}</strong>
          {rows.map(([label, key]) => (
            <div key={key}>
              {t(`quotas.${label}`)}: <OfTenant tenant={tenant.name}>{cells[key]}</OfTenant>
            </div>
          ))}
        </Flex>
      )}
    />
  );
}
