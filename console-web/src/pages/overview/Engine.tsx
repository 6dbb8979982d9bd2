/** Who is online: nodes, and executors by app. */
import { Typography } from "antd";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { Schema } from "../../api/client";
import { byApp, type AppLoad } from "../../lib/load";
import { useLink } from "../../lib/tenant";
import { Moment } from "../../parts/Moment";
import { Section } from "../../parts/Section";
import { SmallTable } from "../../parts/SmallTable";
import { Word } from "../../parts/Tags";
import type { EngineState } from "./useFacts";

/** Rows of each table; the pages have all. */
const FEW = 10;

export function Engine({ engine }: { engine: EngineState }) {
  return (
    <div className="engine">
      {engine.seesExecutors && <Executors executors={engine.executors} error={engine.executorsError} />}
      {engine.seesNodes && <Nodes nodes={engine.nodes} error={engine.nodesError} />}
    </div>
  );
}

function Executors({ executors, error }: { executors: Schema<"Executor">[] | undefined; error: unknown }) {
  const { t } = useTranslation("overview");
  const link = useLink();
  const columns = [
    { title: t("engine.app") },
    { title: t("engine.count"), isNumber: true },
    { title: t("engine.running"), isNumber: true },
    { title: t("engine.held"), isNumber: true },
    { title: t("engine.capacity"), isNumber: true },
  ];
  const name = ({ app, tenant }: AppLoad) => (
    <>
      <Link to={link("/executors", { tenant, app })}>{app}</Link> <Typography.Text type="secondary">{tenant}</Typography.Text>
    </>
  );
  const rows = byApp(executors ?? [])
    .slice(0, FEW)
    .map((load) => ({ key: load.key, cells: [name(load), load.online, load.running, load.held, load.capacity ?? "–"] }));
  return (
    <Section title={t("engine.executors")} extra={<Link to={link("/executors")}>{t("engine.all_executors")}</Link>} isKnown={executors !== undefined} error={error}>
      {rows.length === 0 ? (
        <Typography.Text type="secondary">{`${t("engine.none")} ${t("engine.none_help")}`}</Typography.Text>
      ) : (
        <SmallTable columns={columns} rows={rows} />
      )}
    </Section>
  );
}

function Nodes({ nodes, error }: { nodes: Schema<"Node">[] | undefined; error: unknown }) {
  const { t } = useTranslation("overview");
  const link = useLink();
  // Who left is history; who was lost is not.
  const shown = (nodes ?? []).filter((node) => node.online || node.left_at == null).sort((a, b) => Number(a.online) - Number(b.online) || a.name.localeCompare(b.name));
  const columns = [{ title: t("engine.node") }, { title: t("engine.state") }, { title: t("engine.queue"), isNumber: true }, { title: t("engine.heartbeat") }];
  const rows = shown.slice(0, FEW).map(({ id, name, online, queue_depth, heartbeat_at }) => ({
    key: id,
    cells: [
      <Link key="name" to={link("/nodes")}>{name}</Link>,
      <Word key="state" tone={online ? "good" : "bad"}>{t(online ? "engine.online" : "engine.lost")}</Word>,
      queue_depth,
      <Moment key="heartbeat" at={heartbeat_at} relative />,
    ],
  }));
  return (
    <Section title={t("engine.nodes")} extra={<Link to={link("/nodes")}>{t("engine.all_nodes")}</Link>} isKnown={nodes !== undefined} error={error}>
      <SmallTable columns={columns} rows={rows} />
    </Section>
  );
}
