/** Which tasks this one follows, and which follow it, as a graph and as a list. */
import { Empty, Flex, Typography } from "antd";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { layout } from "../../lib/graph";
import { useLink } from "../../lib/tenant";
import { LogStatus, TaskState } from "../../parts/Tags";

/** A task in the graph; where one may not look, only its id is known. */
export interface GraphTask {
  id: string;
  name?: string | null;
  app_name?: string | null;
  state?: string | null;
  last_status?: string | null;
}

export interface GraphLink {
  from: string;
  to: string;
  on: "success" | "failure" | "always";
}

const WIDTH = 220;
const HEIGHT = 76;
const GAP_X = 96;
const GAP_Y = 20;

function Box({ task, isSelf, x, y }: { task: GraphTask; isSelf: boolean; x: number; y: number }) {
  const { t } = useTranslation("task");
  const link = useLink();
  const name = task.name ?? t("graph.hidden", { id: task.id });
  return (
    <div className={isSelf ? "graph-box graph-self" : "graph-box"} style={{ left: x, top: y, width: WIDTH, height: HEIGHT }}>
      {isSelf || task.name == null ? <strong className="graph-name">{name}</strong> : <Link className="graph-name" to={link(`/tasks/${task.id}`)}>{name}</Link>}
      <Typography.Text type="secondary" className="graph-app">
        {task.app_name ?? ""}
      </Typography.Text>
      <Flex gap={4}>
        {task.state != null && <TaskState state={task.state} />}
        {task.last_status != null && <LogStatus status={task.last_status} />}
      </Flex>
    </div>
  );
}

export function Graph({ self, tasks, links, complete }: { self: string; tasks: GraphTask[]; links: GraphLink[]; complete: boolean }) {
  const { t } = useTranslation("task");
  if (links.length === 0) return <Empty image={Empty.PRESENTED_IMAGE_SIMPLE} description={t("graph.none")} />;
  const places = new Map(
    layout(
      tasks.map((task) => task.id),
      links,
    ).map((place) => [place.id, { x: place.layer * (WIDTH + GAP_X), y: place.row * (HEIGHT + GAP_Y) }]),
  );
  const all = [...places.values()];
  const width = Math.max(...all.map(({ x }) => x)) + WIDTH;
  const height = Math.max(...all.map(({ y }) => y)) + HEIGHT;
  const nameOf = (id: string) => tasks.find((task) => task.id === id)?.name ?? t("graph.hidden", { id });
  return (
    <Flex vertical gap="small">
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- wide graphs are scrolled by keyboard, too */}
      <section className="graph" aria-label={t("graph.title")} tabIndex={0}>
        <div className="graph-space" style={{ width, height }}>
          <svg width={width} height={height} aria-hidden>
            {links.map(({ from, to, on }) => {
              const [a, b] = [places.get(from), places.get(to)];
              if (a === undefined || b === undefined) return null;
              const [x1, y1, x2, y2] = [a.x + WIDTH, a.y + HEIGHT / 2, b.x, b.y + HEIGHT / 2];
              const bend = GAP_X / 2;
              return (
                <g key={`${from} ${to}`} className={`graph-link graph-link-${on}`}>
                  <path d={`M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`} />
                  <text x={(x1 + x2) / 2} y={(y1 + y2) / 2 - 6} textAnchor="middle">
                    {t(`graph.on.${on}`)}
                  </text>
                </g>
              );
            })}
          </svg>
          {tasks.map((task) => {
            const place = places.get(task.id);
            return place && <Box key={task.id} task={task} isSelf={task.id === self} x={place.x} y={place.y} />;
          })}
        </div>
      </section>
      <ul className="graph-list">
        {links.map(({ from, to, on }) => (
          <li key={`${from} ${to}`}>{t("graph.sentence", { from: nameOf(from), to: nameOf(to), on: t(`graph.on.${on}`) })}</li>
        ))}
      </ul>
      {!complete && <Typography.Text type="secondary">{t("graph.more")}</Typography.Text>}
    </Flex>
  );
}
