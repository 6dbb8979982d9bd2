/** The coming three minutes: a lane for each task, and how many fires come due in each second. */
import { Button, Flex, Typography } from "antd";
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { AHEAD_MS, BEHIND_MS, stillToCome, type Coming, type ComingFire } from "../../lib/coming";
import { clusterNow, useNow } from "../../lib/now";
import { Moment } from "../../parts/Moment";
import { Section } from "../../parts/Section";
import { LogStatus } from "../../parts/Tags";
import { LaneRow } from "./LaneRow";
import { useComing } from "./useComing";
import { useFlow } from "./useFlow";

/** Lanes that are shown at first. */
const FEW = 12;

export function ComingFires({ tenant }: { tenant: string | undefined }) {
  const { t } = useTranslation("overview");
  const { coming, error, again } = useComing(tenant);
  return (
    <Section title={t("coming.title")} extra={coming !== undefined && <Count coming={coming} />} isKnown={coming !== undefined} error={error} again={again}>
      {coming !== undefined && coming.lanes.length === 0 && (
        <Typography.Text type="secondary">{`${t("coming.none")} ${t("coming.none_help")}`}</Typography.Text>
      )}
      {coming !== undefined && coming.lanes.length > 0 && <Timeline coming={coming} showTenant={tenant === undefined} />}
    </Section>
  );
}

function Count({ coming }: { coming: Coming }) {
  const { t } = useTranslation("overview");
  const { fires, busiest } = stillToCome(coming, useNow(1_000));
  const text = [t("coming.total", { count: fires }), ...(busiest === undefined ? [] : [t("coming.busiest", { count: busiest.fires })])].join(" · ");
  return (
    <Typography.Text type="secondary" className="number">
      {text}
    </Typography.Text>
  );
}

/** A fire that is pointed at, and the task that it is of. */
interface Picked {
  name: string;
  fire: ComingFire;
}

function Timeline({ coming, showTenant }: { coming: Coming; showTenant: boolean }) {
  const { t } = useTranslation("overview");
  const root = useRef<HTMLDivElement>(null);
  // Everything is drawn from this instant on, and moves.
  const [anchor] = useState(clusterNow);
  const [picked, setPicked] = useState<Picked>();
  const [isAll, setIsAll] = useState(false);
  useFlow(root, anchor);
  const lanes = isAll ? coming.lanes : coming.lanes.slice(0, FEW);
  return (
    <div ref={root} className="coming">
      <div className="lane lane-head">
        <span className="lane-name">{t("coming.per_second")}</span>
        <Seconds coming={coming} anchor={anchor} />
        <span className="lane-end" />
      </div>
      <ul className="lanes" aria-label={t("coming.title")}>
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
        {lanes.length < coming.lanes.length && (
          <Button size="small" onClick={() => setIsAll(true)}>
            {t("coming.show_all", { count: coming.lanes.length })}
          </Button>
        )}
        {coming.moreTasks > 0 && <Typography.Text type="secondary">{t("coming.more_tasks", { count: coming.moreTasks })}</Typography.Text>}
        {!coming.isComplete && <Typography.Text type="secondary">{t("coming.not_all")}</Typography.Text>}
      </Flex>
    </div>
  );
}

const SECONDS_HIGH = 40;

function Seconds({ coming, anchor }: { coming: Coming; anchor: number }) {
  const most = coming.seconds.reduce((high, { fires }) => Math.max(high, fires), 1);
  return (
    <svg className="lane-bar lane-seconds" viewBox={`${-BEHIND_MS} 0 ${AHEAD_MS + BEHIND_MS} ${SECONDS_HIGH}`} preserveAspectRatio="none" aria-hidden="true">
      <g className="flow">
        {coming.seconds.map(({ second, fires }) => {
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
        <span>{t("coming.now")}</span>
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
        <Typography.Text type="secondary">{t("coming.hint")}</Typography.Text>
      ) : (
        <Flex gap="small" align="center" wrap>
          <strong>{picked.name}</strong>
          <Moment at={picked.fire.due_time} exactness="millisecond" />
          <LogStatus status={picked.fire.status} />
          <Typography.Text type="secondary">{picked.fire.node == null ? t("coming.no_node") : t("coming.on_node", { node: picked.fire.node })}</Typography.Text>
        </Flex>
      )}
    </div>
  );
}
