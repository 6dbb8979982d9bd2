/** The imported tasks, each with what it is called there. */
import { Flex, Tooltip, Typography, type TableProps } from "antd";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { SIDE_TONES, sideOf, type Group, type Imported } from "../../lib/imports";
import { useLink } from "../../lib/tenant";
import { List, type Pages } from "../../parts/List";
import { Word } from "../../parts/Tags";

interface Properties {
  pages: Pages<Imported>;
  imported: readonly Imported[];
  chosen: Group | undefined;
}

function Name({ of }: { of: Imported }) {
  const link = useLink();
  return <Link to={link(`/tasks/${of.id}`)}>{of.task?.name ?? of.id}</Link>;
}

function SideWord({ of }: { of: Imported }) {
  const { t } = useTranslation("imports");
  if (of.task === undefined) return <>–</>;
  const side = sideOf(of.task);
  return (
    <Tooltip title={t(`side_help.${side}`)}>
      <span>
        <Word tone={SIDE_TONES[side]}>{t(`side.${side}`)}</Word>
      </span>
    </Tooltip>
  );
}

export function ImportedTasks({ pages, imported, chosen }: Properties) {
  const { t } = useTranslation("imports");
  const { t: common } = useTranslation();
  const { t: xxljob } = useTranslation("xxljob");
  const shown = imported.filter(({ source, task }) => chosen === undefined || (source === chosen.source && task?.app === chosen.app));
  const there = ({ source, there: id }: Imported) => `${source} #${id}`;
  const columns: TableProps<Imported>["columns"] = [
    { title: common("task"), key: "task", width: 220, render: (_, each) => <Name of={each} /> },
    { title: common("app"), key: "app", width: 150, render: (_, each) => each.task?.app ?? "–" },
    { title: t("tasks.there"), key: "there", width: 150, render: (_, each) => there(each) },
    { title: xxljob("task.number"), key: "number", width: 120, className: "number", render: (_, each) => each.number ?? "–" },
    { title: common("status"), key: "side", width: 170, render: (_, each) => <SideWord of={each} /> },
  ];
  return (
    <section>
      <Typography.Title level={2} className="section-title">
        {chosen === undefined ? t("tasks.title", { n: imported.length }) : t("tasks.title_of", { app: chosen.app, n: shown.length })}
      </Typography.Title>
      <List<Imported>
        label={t("tasks.label")}
        pages={pages}
        items={shown}
        rowKey={({ id }) => id}
        columns={columns}
        card={(each) => (
          <Flex vertical gap={4} align="start">
            <Name of={each} />
            <span>{`${each.task?.app ?? "–"} · ${there(each)}`}</span>
            {each.number !== undefined && <span>{`${xxljob("task.number")}: ${each.number}`}</span>}
            <SideWord of={each} />
          </Flex>
        )}
      />
    </section>
  );
}
