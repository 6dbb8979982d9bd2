/** One task's lane in the coming three minutes; a link to the task. */
import { Typography } from "antd";
import { useMemo, useRef, type KeyboardEvent, type PointerEvent } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { AHEAD_MS, BEHIND_MS, marksOf, nearest, stepFrom, type UpcomingFire, type Lane } from "../../lib/upcoming";
import { clusterNow } from "../../lib/now";
import { toneOfLog } from "../../lib/states";
import { useLink } from "../../lib/tenant";

interface Properties {
  lane: Lane;
  /** The instant at which the drawing's left edge was, epoch ms. */
  anchor: number;
  showTenant: boolean;
  /** Tells which fire is pointed at. */
  onPick: (fire: UpcomingFire | undefined) => void;
}

const HIGH = 20;

export function LaneRow({ lane, anchor, showTenant, onPick }: Properties) {
  const { t } = useTranslation("overview");
  const link = useLink();
  const at = useRef<UpcomingFire>(undefined);
  const pick = (fire: UpcomingFire | undefined) => {
    at.current = fire;
    onPick(fire);
  };
  const onMove = (event: PointerEvent<SVGSVGElement>) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    pick(lane.next[nearest(lane.next, clusterNow() - BEHIND_MS + ((event.clientX - left) / width) * (AHEAD_MS + BEHIND_MS))]);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
    event.preventDefault();
    pick(stepFrom(lane.next, at.current, event.key === "ArrowRight" ? 1 : -1));
  };
  return (
    <li>
      <Link
        to={link(`/tasks/${lane.task}`)}
        className="lane"
        onFocus={() => pick(lane.next[nearest(lane.next, clusterNow())])}
        onBlur={() => onPick(undefined)}
        onKeyDown={onKey}
      >
        <span className="lane-name">
          {lane.name} {showTenant && <Typography.Text type="secondary">{lane.tenant}</Typography.Text>}
        </span>
        <svg
          className="lane-bar"
          viewBox={`${-BEHIND_MS} 0 ${AHEAD_MS + BEHIND_MS} ${HIGH}`}
          preserveAspectRatio="none"
          aria-hidden="true"
          onPointerMove={onMove}
          onPointerLeave={() => onPick(undefined)}
        >
          <Marks lane={lane} anchor={anchor} />
          <line x1={0} x2={0} y1={0} y2={HIGH} vectorEffect="non-scaling-stroke" className="now-line" />
        </svg>
        <span className="lane-end number">{t("upcoming.fires", { count: lane.fires })}</span>
      </Link>
    </li>
  );
}

/** Drawn when the fires change, not when something is pointed at. */
function Marks({ lane, anchor }: Pick<Properties, "lane" | "anchor">) {
  const marks = useMemo(() => marksOf(lane), [lane]);
  const most = marks.reduce((high, { fires }) => Math.max(high, fires), 1);
  const isDense = lane.next.length > marks.length || marks.length > 60;
  return (
    <g className="flow">
      {marks.map(({ at, status, fires }) =>
        isDense ? (
          <rect key={at} x={at - anchor} y={HIGH - HIGH * (fires / most) * 0.8} width={900} height={HIGH * (fires / most) * 0.8} className={`mark mark-${status} mark-${toneOfLog(status)}`} />
        ) : (
          <line key={at} x1={at - anchor} x2={at - anchor} y1={3} y2={HIGH - 3} vectorEffect="non-scaling-stroke" className={`mark mark-${status} mark-${toneOfLog(status)}`} />
        ),
      )}
    </g>
  );
}
