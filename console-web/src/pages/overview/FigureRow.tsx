/** The row of figures on top. */
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { millis } from "../../lib/figures";
import type { Tone } from "../../lib/states";
import { useLink } from "../../lib/tenant";
import { LATE_MS } from "../../lib/verdict";
import type { Row } from "./useFacts";

interface FigureProperties {
  name: string;
  value: ReactNode;
  note: string;
  tone?: Tone;
}

function Figure({ name, value, note, tone }: FigureProperties) {
  return (
    <div className="figure">
      <dt>{name}</dt>
      <dd className={tone === undefined ? "figure-value" : `figure-value figure-${tone}`}>{value}</dd>
      <dd className="figure-note">{note}</dd>
    </div>
  );
}

/** A figure that may not be known yet, or of nothing. */
function shown(value: number | null | undefined, write: (value: number) => string): string {
  return value === null || value === undefined ? "–" : write(value);
}

function perSecond(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: value < 10 ? 2 : value < 100 ? 1 : 0 });
}

/** 99.95 % must not be called 100 %. */
function percent(share: number): string {
  return share === 1 ? "100 %" : `${(Math.floor(share * 10_000) / 100).toFixed(2)} %`;
}

export function FigureRow({ row }: { row: Row }) {
  const { t } = useTranslation("overview");
  const link = useLink();
  const recent = t("figures.recent", { count: row.minutes });
  const half = row.p50 == null ? recent : `p50 ${millis(row.p50)}, ${recent}`;
  return (
    <dl className="figures" aria-label={t("figures.label")}>
      <Figure name={t("figures.per_second")} value={shown(row.perSecond, perSecond)} note={recent} />
      <Figure
        name={t("figures.success")}
        value={shown(row.success, percent)}
        note={row.firesHour === undefined ? t("figures.hour") : t("figures.fires_hour", { count: row.firesHour })}
        tone={row.success != null && row.success < 1 ? "odd" : undefined}
      />
      <Figure name={t("figures.lateness")} value={shown(row.p99, millis)} note={half} tone={row.p99 != null && row.p99 > LATE_MS ? "odd" : undefined} />
      <Figure
        name={t("figures.failed")}
        value={row.failed ? <Link to={link("/logs", { status: "failed" })}>{row.failed}</Link> : shown(row.failed, String)}
        note={t("figures.hour")}
        tone={row.failed ? "bad" : undefined}
      />
      <EngineFigures row={row} />
    </dl>
  );
}

function EngineFigures({ row: { engine } }: { row: Row }) {
  const { t } = useTranslation("overview");
  const link = useLink();
  const { executors, nodes, moreExecutors } = engine;
  const plus = moreExecutors ? "+" : "";
  const sum = (of: "running" | "capacity") => executors?.reduce((all, each) => all + each[of], 0) ?? 0;
  const online = nodes?.filter((node) => node.online).length ?? 0;
  const lost = nodes?.filter((node) => !node.online && node.left_at == null).length ?? 0;
  const idle = executors?.filter((each) => each.disabled || each.draining || each.weight === 0).length ?? 0;
  return (
    <>
      {executors !== undefined && (
        <>
          <Figure name={t("figures.running")} value={`${sum("running")}${plus}`} note={t("figures.capacity", { count: sum("capacity") })} />
          <Figure
            name={t("figures.executors")}
            value={<Link to={link("/executors")}>{`${executors.length}${plus}`}</Link>}
            note={executors.length === 0 ? t("figures.none_takes") : idle > 0 ? t("figures.not_taking", { count: idle }) : t("figures.all_take")}
            tone={executors.length === 0 ? "bad" : undefined}
          />
        </>
      )}
      {nodes !== undefined && (
        <Figure
          name={t("figures.nodes")}
          value={<Link to={link("/nodes")}>{online}</Link>}
          note={lost > 0 ? t("figures.lost", { count: lost }) : t("figures.none_lost", { count: online })}
          tone={lost > 0 ? "odd" : undefined}
        />
      )}
    </>
  );
}
