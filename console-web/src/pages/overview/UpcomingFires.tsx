/** The coming three minutes: a lane for each task, and how many fires come due in each second. */
import { Button, Flex, Typography } from "antd";
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { AHEAD_MS, BEHIND_MS, stillToCome, type Upcoming, type UpcomingFire } from "../../lib/upcoming";
import { clusterNow, useNow } from "../../lib/now";
import { Moment } from "../../parts/Moment";
import { Section } from "../../parts/Section";
import { LogStatus } from "../../parts/Tags";
import { LaneRow } from "./LaneRow";
import { useUpcoming } from "./useUpcoming";
import { useFlow } from "./useFlow";

/** Lanes that are shown at first. */
const FEW = 12;

export function UpcomingFires({ tenant }: { tenant: string | undefined }) {
  const { t } = useTranslation("overview");
  const { upcoming, error, again } = useUpcoming(tenant);
  return (
    <Section title={t("upcoming.title")} extra={upcoming !== undefined && <Count upcoming={upcoming} />} isKnown={upcoming !== undefined} error={error} again={again}>
      {upcoming !== undefined && upcoming.lanes.length === 0 && (
        <Typography.Text type="secondary">{`${t("upcoming.none")} ${t("upcoming.none_help")}`}</Typography.Text>
      )}
      {upcoming !== undefined && upcoming.lanes.length > 0 && <Timeline upcoming={upcoming} showTenant={tenant === undefined} />}
    </Section>
  );
}

function Count({ upcoming }: { upcoming: Upcoming }) {
  const { t } = useTranslation("overview");
  const { fires, busiest } = stillToCome(upcoming, useNow(1_000));
  const text = [t("upcoming.total", { count: fires }), ...(busiest === undefined ? [] : [t("upcoming.busiest", { count: busiest.fires })])].join(" · ");
  return (
    <Typography.Text type="secondary" className="number">
      {text}
    </Typography.Text>
  );
}

/** A fire that is pointed at, and the task that it is of. */
interface Picked {
  name: string;
  fire: UpcomingFire;
}

function Timeline({ upcoming, showTenant }: { upcoming: Upcoming; showTenant: boolean }) {
  const { t } = useTranslation("overview");
  const root = useRef<HTMLDivElement>(null);
  // Everything is drawn from this instant on, and moves.
  const [anchor] = useState(clusterNow);
  const [picked, setPicked] = useState<Picked>();
  const [isAll, setIsAll] = useState(false);
  useFlow(root, anchor);
  const lanes = isAll ? upcoming.lanes : upcoming.lanes.slice(0, FEW);
  return (
    <div ref={root} className="upcoming">
      <div className="lane lane-head">
        <span className="lane-name">{t("upcoming.per_second")}</span>
        <Seconds upcoming={upcoming} anchor={anchor} />
        <span className="lane-end" />
      </div>
      <ul className="lanes" aria-label={t("upcoming.title")}>
        {lanes.map((lane) => (
          <LaneRow
            key={lane.task}
            lane={lane}
            anchor={anchor}
            showTenant={showTenant}
            onPick={(fire) => setPicked(fire === undefined ? undefined : { name: lane.name, fire })}
          />
        ))}
      </ul>
      <Axis />
      <Reading picked={picked} />
      <Legend />
      <Flex gap="small" align="center" wrap>
        {lanes.length < upcoming.lanes.length && (
          <Button size="small" onClick={() => setIsAll(true)}>
            {t("upcoming.show_all", { count: upcoming.lanes.length })}
          </Button>
        )}
        {upcoming.moreTasks > 0 && <Typography.Text type="secondary">{t("upcoming.more_tasks", { count: upcoming.moreTasks })}</Typography.Text>}
        {!upcoming.isComplete && <Typography.Text type="secondary">{t("upcoming.not_all")}</Typography.Text>}
      </Flex>
    </div>
  );
}

const SECONDS_HIGH = 40;

function Seconds({ upcoming, anchor }: { upcoming: Upcoming; anchor: number }) {
  const most = upcoming.seconds.reduce((high, { fires }) => Math.max(high, fires), 1);
  return (
    <svg className="lane-bar lane-seconds" viewBox={`${-BEHIND_MS} 0 ${AHEAD_MS + BEHIND_MS} ${SECONDS_HIGH}`} preserveAspectRatio="none" aria-hidden="true">
      <g className="flow">
        {upcoming.seconds.map(({ second, fires }) => {
          const height = (fires / most) * SECONDS_HIGH;
          return <rect key={second} x={second - anchor + 100} y={SECONDS_HIGH - height} width={800} height={height} className="second" />;
        })}
      </g>
      <line x1={0} x2={0} y1={0} y2={SECONDS_HIGH} vectorEffect="non-scaling-stroke" className="now-line" />
    </svg>
  );
}

function Axis() {
  const { t } = useTranslation("overview");
  return (
    <div className="lane lane-axis" aria-hidden="true">
      <span className="lane-name" />
      <span className="axis">
        <span>{t("upcoming.now")}</span>
        <span>+1 min</span>
        <span>+2 min</span>
        <span>+3 min</span>
      </span>
      <span className="lane-end" />
    </div>
  );
}

const LIKELY = ["init", "queued", "dispatched"] as const;

/** What the colours of marks mean. */
function Legend() {
  const { t } = useTranslation();
  return (
    <span className="mark-legend" aria-hidden="true">
      {LIKELY.map((status) => (
        <span key={status}>
          <i className={`mark-key mark-key-${status}`} /> {t(`log_status.${status}`)}
        </span>
      ))}
    </span>
  );
}

/** What the pointer, or the keyboard, is at. */
function Reading({ picked }: { picked: Picked | undefined }) {
  const { t } = useTranslation("overview");
  return (
    <div className="reading" aria-live="polite">
      {picked === undefined ? (
        <Typography.Text type="secondary">{t("upcoming.hint")}</Typography.Text>
      ) : (
        <Flex gap="small" align="center" wrap>
          <strong>{picked.name}</strong>
          <Moment at={picked.fire.due_time} exactness="millisecond" />
          <LogStatus status={picked.fire.status} />
          <Typography.Text type="secondary">{picked.fire.node == null ? t("upcoming.no_node") : t("upcoming.on_node", { node: picked.fire.node })}</Typography.Text>
        </Flex>
      )}
    </div>
  );
}
