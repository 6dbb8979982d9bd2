/** Figures over time as charts: how fires ended, how late they started, how long they took. */
import { Empty } from "antd";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { millis, OUTCOMES, type Filled, type Outcome, type Step } from "../lib/figures";
import { Chart, type Series } from "./Chart";

const COLOURS: Record<Outcome, number> = { succeeded: 1, failed: 2, discarded: 3, expired: 4, cancelled: 6, open: 5 };

interface Properties {
  filled: Filled;
  step: Step;
  /** Charts of one name move their cross hairs together. */
  together: string;
}

/** Fires by outcome; an outcome that never came has no line, but success and failure always have. */
export function OutcomeChart({ filled, step, together }: Properties) {
  const { t } = useTranslation("overview");
  const series = useMemo<Series[]>(() => {
    const shown = OUTCOMES.filter((name) => name === "succeeded" || name === "failed" || filled.points.some((point) => point !== undefined && point[name] > 0));
    return shown.map((name) => ({
      label: t(`outcomes.${name}`),
      values: filled.points.map((point) => point?.[name] ?? 0),
      colour: COLOURS[name],
      kind: name === "succeeded" ? "area" : "line",
    }));
  }, [filled, t]);
  return <Chart label={t("charts.fires", { step: t(`charts.steps.${step}`) })} instants={filled.instants} series={series} write={count} whole together={together} />;
}

/** p50, p90 and p99 of lateness or duration. */
export function TimesChart({ filled, of, together }: Omit<Properties, "step"> & { of: "lateness" | "duration" }) {
  const { t } = useTranslation("overview");
  const series = useMemo<Series[]>(() => {
    const values = (name: "p50_ms" | "p90_ms" | "p99_ms") => filled.points.map((point) => point?.[of][name] ?? null);
    return [
      { label: "p50", values: values("p50_ms"), colour: 0 },
      { label: "p90", values: values("p90_ms"), colour: 5 },
      { label: "p99", values: values("p99_ms"), colour: 3 },
    ];
  }, [filled, of]);
  return <Chart label={t(`charts.${of}`)} instants={filled.instants} series={series} write={millis} together={together} />;
}

/** In place of charts that would be empty. */
export function NoFires() {
  const { t } = useTranslation("overview");
  return <Empty image={Empty.PRESENTED_IMAGE_SIMPLE} description={t("charts.empty")} />;
}

function count(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: 1 });
}
