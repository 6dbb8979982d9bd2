/** The row of figures on top. */
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { millis } from "../../lib/figures";
import type { Tone } from "../../lib/states";
import { useLink } from "../../lib/tenant";
import { LATE_MS } from "../../lib/verdict";
import { Placeholder } from "../../parts/Placeholder";
import type { EngineState, Row } from "./useFacts";

interface FigureProperties {
  name: string;
  value: ReactNode;
  note: string;
  tone?: Tone;
  /** It is on its way. */
  isWaiting?: boolean;
}

function Figure({ name, value, note, tone, isWaiting = false }: FigureProperties) {
  if (isWaiting) {
    return (
      <div className="figure" aria-busy="true">
        <dt>{name}</dt>
        <dd className="figure-value">
          <Placeholder rows={1} width="50%" />
        </dd>
      </div>
    );
  }
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
  const { isWaiting } = row;
  const recent = t("figures.recent", { count: row.minutes });
  const half = row.p50 == null ? recent : `p50 ${millis(row.p50)}, ${recent}`;
  return (
    <dl className="figures" aria-label={t("figures.label")}>
      <Figure name={t("figures.per_second")} value={shown(row.perSecond, perSecond)} note={recent} isWaiting={isWaiting} />
      <Figure
        name={t("figures.success")}
        value={shown(row.success, percent)}
        note={row.firesHour === undefined ? t("figures.hour") : t("figures.fires_hour", { count: row.firesHour })}
        tone={row.success != null && row.success < 1 ? "odd" : undefined}
        isWaiting={isWaiting}
      />
      <Figure
        name={t("figures.lateness")}
        value={shown(row.p99, millis)}
        note={half}
        tone={row.p99 != null && row.p99 > LATE_MS ? "odd" : undefined}
        isWaiting={isWaiting}
      />
      <Figure
        name={t("figures.failed")}
        value={row.failed ? <Link to={link("/logs", { status: "failed" })}>{row.failed}</Link> : shown(row.failed, String)}
        note={t("figures.hour")}
        tone={row.failed ? "bad" : undefined}
        isWaiting={isWaiting}
      />
      {row.engine.seesExecutors && <ExecutorFigures engine={row.engine} />}
      {row.engine.seesNodes && <NodeFigure engine={row.engine} />}
    </dl>
  );
}

function ExecutorFigures({ engine: { executors, executorsError, moreExecutors } }: { engine: EngineState }) {
  const { t } = useTranslation("overview");
  const common = useTranslation().t;
  const link = useLink();
  const isWaiting = executors === undefined && executorsError === null;
  const plus = moreExecutors ? "+" : "";
  const sum = (of: "running" | "capacity") => (executors ?? []).reduce((all, each) => all + each[of], 0);
  const idle = executors?.filter((each) => each.disabled || each.draining || each.weight === 0).length ?? 0;
  const note = () => {
    if (executors === undefined) return common("not_known");
    if (executors.length === 0) return t("figures.none_takes");
    return idle > 0 ? t("figures.not_taking", { count: idle }) : t("figures.all_take");
  };
  return (
    <>
      <Figure
        name={t("figures.running")}
        value={executors === undefined ? "–" : `${sum("running")}${plus}`}
        note={executors === undefined ? common("not_known") : t("figures.capacity", { count: sum("capacity") })}
        isWaiting={isWaiting}
      />
      <Figure
        name={t("figures.executors")}
        value={executors === undefined ? "–" : <Link to={link("/executors")}>{`${executors.length}${plus}`}</Link>}
        note={note()}
        tone={executors?.length === 0 ? "bad" : undefined}
        isWaiting={isWaiting}
      />
    </>
  );
}

function NodeFigure({ engine: { nodes, nodesError } }: { engine: EngineState }) {
  const { t } = useTranslation("overview");
  const common = useTranslation().t;
  const link = useLink();
  const online = nodes?.filter((node) => node.online).length ?? 0;
  const lost = nodes?.filter((node) => !node.online && node.left_at == null).length ?? 0;
  const note = () => {
    if (nodes === undefined) return common("not_known");
    return lost > 0 ? t("figures.lost", { count: lost }) : t("figures.none_lost", { count: online });
  };
  return (
    <Figure
      name={t("figures.nodes")}
      value={nodes === undefined ? "–" : <Link to={link("/nodes")}>{online}</Link>}
      note={note()}
      tone={lost > 0 ? "odd" : undefined}
      isWaiting={nodes === undefined && nodesError === null}
    />
  );
}
