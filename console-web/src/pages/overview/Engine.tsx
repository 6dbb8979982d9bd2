/** Who is online: nodes, and executors by app. */
import { Typography, type TableProps } from "antd";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { Schema } from "../../api/client";
import { byApp, type AppLoad } from "../../lib/load";
import { useLink } from "../../lib/tenant";
import { Moment } from "../../parts/Moment";
import { Section } from "../../parts/Section";
import { Word } from "../../parts/Tags";
import type { EngineState } from "./useFacts";
import { DataTable } from "../../parts/DataTable";

/** Rows of each table; the pages have all. */
const FEW = 10;

export function Engine({ engine }: { engine: EngineState }) {
  return (
    <div className="engine">
      {engine.executors !== undefined && <Executors executors={engine.executors} />}
      {engine.nodes !== undefined && <Nodes nodes={engine.nodes} />}
    </div>
  );
}

function Executors({ executors }: { executors: Schema<"Executor">[] }) {
  const { t } = useTranslation("overview");
  const link = useLink();
  const columns: TableProps<AppLoad>["columns"] = [
    {
      title: t("engine.app"),
      key: "app",
      render: (_, row) => (
        <>
          <Link to={link("/executors", { tenant: row.tenant, app: row.app })}>{row.app}</Link> <Typography.Text type="secondary">{row.tenant}</Typography.Text>
        </>
      ),
    },
    { title: t("engine.count"), dataIndex: "online", align: "right", className: "number" },
    { title: t("engine.running"), dataIndex: "running", align: "right", className: "number" },
    { title: t("engine.held"), dataIndex: "held", align: "right", className: "number" },
    { title: t("engine.capacity"), dataIndex: "capacity", align: "right", className: "number" },
  ];
  return (
    <Section title={t("engine.executors")} extra={<Link to={link("/executors")}>{t("engine.all_executors")}</Link>}>
      {executors.length === 0 ? (
        <Typography.Text type="secondary">{`${t("engine.none")} ${t("engine.none_help")}`}</Typography.Text>
      ) : (
        <DataTable<AppLoad> size="small" pagination={false} rowKey="key" columns={columns} dataSource={byApp(executors).slice(0, FEW)} scroll={{ x: "max-content" }} />
      )}
    </Section>
  );
}

function Nodes({ nodes }: { nodes: Schema<"Node">[] }) {
  const { t } = useTranslation("overview");
  const link = useLink();
  // Who left is history; who was lost is not.
  const shown = nodes.filter((node) => node.online || node.left_at == null).sort((a, b) => Number(a.online) - Number(b.online) || a.name.localeCompare(b.name));
  const columns: TableProps<Schema<"Node">>["columns"] = [
    { title: t("engine.node"), dataIndex: "name", render: (name: string) => <Link to={link("/nodes")}>{name}</Link> },
    { title: t("engine.state"), dataIndex: "online", render: (online: boolean) => <Word tone={online ? "good" : "bad"}>{t(online ? "engine.online" : "engine.lost")}</Word> },
    { title: t("engine.queue"), dataIndex: "queue_depth", align: "right", className: "number" },
    { title: t("engine.heartbeat"), dataIndex: "heartbeat_at", render: (at: number) => <Moment at={at} relative /> },
  ];
  return (
    <Section title={t("engine.nodes")} extra={<Link to={link("/nodes")}>{t("engine.all_nodes")}</Link>}>
      <DataTable<Schema<"Node">> size="small" pagination={false} rowKey="id" columns={columns} dataSource={shown.slice(0, FEW)} scroll={{ x: "max-content" }} />
    </Section>
  );
}
