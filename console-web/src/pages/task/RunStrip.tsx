/** The last runs as a strip of bars: height is duration, colour is how it ended. */
import { Empty, Flex, Tooltip, Typography } from "antd";
import { useRef, type KeyboardEvent } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { $api } from "../../api/client";
import { barsOf, successRate, type Bar } from "../../lib/strip";
import { instant, span, viewerZone } from "../../lib/time";
import { useLink } from "../../lib/tenant";
import { useNow } from "../../lib/now";
import { isLogStatus } from "../../lib/states";
import { Failure } from "../../parts/Failure";
import { Reason } from "../../parts/Reason";

/** Runs in the strip. */
const RUNS = 60;
/** The strip asks for runs up to now, renewed this often, ms: those ahead of us are the next fires. */
const STEP_MS = 30_000;
/** What has come due since then is shown this soon, ms. */
const LOOK_MS = 1_000;

function About({ bar: { log, duration, lateness } }: { bar: Bar }) {
  const { t } = useTranslation(["task", "common"]);
  return (
    <>
      <div>{instant(log.fire_time, viewerZone(), "millisecond")}</div>
      <div>{isLogStatus(log.status) ? t(`common:log_status.${log.status}`) : log.status}</div>
      {log.reason !== "" && (
        <div>
          <Reason reason={log.reason} />
        </div>
      )}
      {lateness !== undefined && <div>{t("strip.lateness", { span: span(lateness) })}</div>}
      {duration !== undefined && <div>{t("strip.duration", { span: span(duration) })}</div>}
    </>
  );
}

function Bars({ bars }: { bars: Bar[] }) {
  const { t } = useTranslation(["task", "common"]);
  const link = useLink();
  const holder = useRef<HTMLUListElement>(null);
  // One stop of the tab key; the arrows go from run to run.
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step === undefined) return;
    const links = [...(holder.current?.querySelectorAll("a") ?? [])];
    const next = links[links.findIndex((each) => each === document.activeElement) + step];
    if (next !== undefined) {
      next.focus();
      event.preventDefault();
    }
  };
  const name = ({ log }: Bar) =>
    `${instant(log.fire_time, viewerZone())} ${isLogStatus(log.status) ? t(`common:log_status.${log.status}`) : log.status}`;
  return (
    // eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- the arrows move between the links in it
    <ul className="run-strip" ref={holder} onKeyDown={onKeyDown} aria-label={t("strip.title")}>
      {bars.map((bar, index) => (
        <li key={bar.log.id}>
          <Tooltip title={<About bar={bar} />}>
            <Link to={link(`/logs/${bar.log.id}`)} aria-label={name(bar)} tabIndex={index === bars.length - 1 ? 0 : -1}>
              <span className={`run-bar run-bar-${bar.tone}`} style={{ height: `${bar.height * 100}%` }} />
            </Link>
          </Tooltip>
        </li>
      ))}
    </ul>
  );
}

const LEGEND = [
  ["good", "succeeded"],
  ["bad", "failed"],
  ["odd", "odd"],
  ["open", "open"],
  ["idle", "cancelled"],
] as const;

export function RunStrip({ task }: { task: string }) {
  const { t } = useTranslation("task");
  const now = useNow(LOOK_MS);
  const until = Math.ceil(now / STEP_MS) * STEP_MS;
  const runs = $api.useQuery("get", "/task-logs", { params: { query: { task, until, limit: RUNS } } }, { placeholderData: (last) => last });
  if (runs.data === undefined) return <Failure error={runs.error} again={() => void runs.refetch()} />;
  const logs = runs.data.items.filter((log) => log.fire_time <= now && log.parent == null);
  if (logs.length === 0) return <Empty image={Empty.PRESENTED_IMAGE_SIMPLE} description={t("strip.none")} />;
  const rate = successRate(logs);
  return (
    <>
      <Failure error={runs.error} again={() => void runs.refetch()} />
      <Bars bars={barsOf(logs)} />
      <Flex gap="middle" wrap justify="space-between">
        <Typography.Text>
          {rate === null ? t("strip.none_ended") : t("strip.rate", { rate: `${Math.round(rate * 1000) / 10} %`, count: logs.length })}
        </Typography.Text>
        <Flex gap="small" wrap aria-hidden>
          {LEGEND.map(([tone, word]) => (
            <span key={tone} className="legend">
              <span className={`legend-mark run-bar-${tone}`} /> {t(`strip.legend.${word}`)}
            </span>
          ))}
        </Flex>
      </Flex>
    </>
  );
}
