/** The coming 24 hours as a heat map: a row for each hour, a column for each minute; its peaks in words. */
import { Typography } from "antd";
import { useMemo, useState, type PointerEvent } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { heatRows, shade, SHADES, type Forecast, type HeatRow, type Peak } from "../../lib/heat";
import { useLink } from "../../lib/tenant";
import { instant, viewerZone } from "../../lib/time";
import { Moment } from "../../parts/Moment";
import { Section } from "../../parts/Section";
import { useForecast } from "./useForecast";

const COLUMNS = 60;
/** Units of the drawing: a cell is 10 by 10, with a gap of 1. */
const CELL = 10;

export function ForecastMap({ tenant }: { tenant: string | undefined }) {
  const { t } = useTranslation("overview");
  const { isAllowed, forecast, error, again } = useForecast(tenant);
  if (!isAllowed) return null;
  const total = forecast?.minutes.reduce((sum, fires) => sum + fires, 0) ?? 0;
  return (
    <Section title={t("heat.title")} extra={total > 0 && <Legend />} isKnown={forecast !== undefined} error={error} again={again}>
      {forecast !== undefined && total === 0 && <Typography.Text type="secondary">{t("heat.none")}</Typography.Text>}
      {forecast !== undefined && total > 0 && <HeatMap forecast={forecast} total={total} />}
      {forecast !== undefined && forecast.left_out > 0 && <Typography.Text type="warning">{t("heat.left_out", { count: forecast.left_out })}</Typography.Text>}
    </Section>
  );
}

function Legend() {
  const { t } = useTranslation("overview");
  return (
    <span className="heat-legend" aria-hidden="true">
      {t("heat.few")}
      {Array.from({ length: SHADES }, (_, step) => (
        <i key={step} className={`heat-key heat-${step}`} />
      ))}
      {t("heat.many")}
    </span>
  );
}

function HeatMap({ forecast, total }: { forecast: Forecast; total: number }) {
  const { t } = useTranslation("overview");
  const zone = viewerZone();
  const rows = useMemo(() => heatRows(forecast.from, forecast.minutes, zone), [forecast, zone]);
  const [picked, setPicked] = useState<{ at: number; fires: number }>();
  const inWords = forecast.peaks.map(({ minute, fires }) => `${instant(minute, zone, "minute")}: ${t("heat.at", { count: fires })}`).join("; ");
  const onMove = (event: PointerEvent<SVGSVGElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    const row = rows[Math.floor(((event.clientY - box.top) / box.height) * rows.length)];
    const minute = Math.floor(((event.clientX - box.left) / box.width) * COLUMNS);
    const fires = row?.cells[minute];
    setPicked(row === undefined || fires === undefined ? undefined : { at: row.at + (minute - firstMinute(row)) * 60_000, fires });
  };
  return (
    <>
      <div className="heat">
        <ol className="heat-hours" aria-hidden="true">
          {rows.map((row) => (
            <li key={row.at}>{row.label}</li>
          ))}
        </ol>
        <svg
          className="heat-map"
          role="img"
          aria-label={t("heat.label", { total, peaks: inWords })}
          viewBox={`0 0 ${COLUMNS * CELL} ${rows.length * CELL}`}
          preserveAspectRatio="none"
          onPointerMove={onMove}
          onPointerLeave={() => setPicked(undefined)}
        >
          <Cells rows={rows} />
        </svg>
        <div className="heat-minutes" aria-hidden="true">
          {[":00", ":15", ":30", ":45"].map((minute) => (
            <span key={minute}>{minute}</span>
          ))}
        </div>
      </div>
      <div className="reading">
        {picked === undefined ? (
          <Typography.Text type="secondary">{t("heat.hint")}</Typography.Text>
        ) : (
          <>
            <Moment at={picked.at} exactness="minute" /> · {t("heat.at", { count: picked.fires })}
          </>
        )}
      </div>
      <Peaks peaks={forecast.peaks} />
    </>
  );
}

/** The first minute of the hour that a row knows. */
function firstMinute(row: HeatRow): number {
  return row.cells.findIndex((fires) => fires !== undefined);
}

/** Drawn when the forecast changes, not when something is pointed at. */
function Cells({ rows }: { rows: HeatRow[] }) {
  return useMemo(() => {
    const most = rows.reduce((high, { cells }) => cells.reduce<number>((top, fires) => Math.max(top, fires ?? 0), high), 0);
    return rows.map((row, y) =>
      row.cells.map((fires, x) =>
        fires === undefined ? null : <rect key={`${row.at} ${x}`} x={x * CELL} y={y * CELL} width={CELL - 1} height={CELL - 1} className={`heat-${shade(fires, most)}`} />,
      ),
    );
  }, [rows]);
}

function Peaks({ peaks }: { peaks: Peak[] }) {
  const { t } = useTranslation("overview");
  const link = useLink();
  return (
    <>
      <Typography.Title level={3} className="peaks-title">
        {t("heat.peaks")}
      </Typography.Title>
      <ol className="peaks">
        {peaks.map((peak) => (
          <li key={peak.minute}>
            <Moment at={peak.minute} exactness="minute" /> <strong>{t("heat.at", { count: peak.fires })}</strong>
            {peak.tasks.map(({ task, name, fires }) => (
              <Link key={task} to={link(`/tasks/${task}`)}>
                {t("heat.peak_tasks", { name, count: fires })}
              </Link>
            ))}
          </li>
        ))}
      </ol>
    </>
  );
}
