/** A chart over time (uPlot); its name carries the last figures, for those who cannot see it. */
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useTranslation } from "react-i18next";
import { useAppearance } from "../lib/appearance";
import { instant, viewerZone } from "../lib/time";

/** One line, or row of bars. */
export interface Series {
  label: string;
  /** A value for each instant; `null` leaves a hole. */
  values: (number | null)[];
  /** Index into the chart's colours. */
  colour: number;
  kind?: "line" | "bars" | "area";
}

interface Properties {
  /** Says what it shows. */
  label: string;
  /** Epoch ms, ascending. */
  instants: number[];
  series: Series[];
  /** How a value is written: `12 ms`. */
  write: (value: number) => string;
  height?: number;
  /** Charts of one name move their cross hairs together. */
  together?: string;
  /** The values are counts: the axis names no halves. */
  whole?: boolean;
  /** Upper end of the vertical axis; absent: what the values ask for. */
  max?: number;
}

const COLOURS = {
  light: ["#2f54eb", "#217a3c", "#c4242b", "#9a5b00", "#6b3fa0", "#0e7490", "#5c6474"],
  dark: ["#8fa8ff", "#5cc97b", "#ff7875", "#e5a445", "#c3a3f0", "#5cc8dc", "#a3abba"],
};

const DAY_MS = 86_400_000;

const [SECOND, MINUTE, HOUR] = [1_000, 60_000, 3_600_000];
/** Steps between the marks of the time axis, ms. */
const TIMES = [
  ...[1, 5, 10, 15, 30].map((count) => count * SECOND),
  ...[1, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 3, 4, 6, 8, 12].map((count) => count * HOUR),
  ...[1, 2, 3, 5, 7, 10, 14, 28].map((count) => count * DAY_MS),
];

/** Those that are no finer than the figures lie apart: two marks of one minute would have one name. */
export function timeSteps(instants: ArrayLike<number>): number[] {
  const all = Array.from(instants);
  const apart = Math.min(...all.slice(1).map((at, index) => at - (all[index] ?? at)), DAY_MS);
  return TIMES.filter((step) => step >= apart && step >= MINUTE);
}

/** Ticks of the time axis in the viewer's zone: the time, with the day below where it changes; days alone where they lie that far apart. */
function ticks(_: uPlot, instants: number[], __: number, ___: number, apart: number): string[] {
  let last = "";
  return instants.map((at) => {
    const shown = instant(at, viewerZone(), "minute");
    const [day, time] = [shown.slice(5, 10), shown.slice(11)];
    if (apart >= DAY_MS) return day;
    const text = day === last ? time : `${time}\n${day}`;
    last = day;
    return text;
  });
}

/** A value between two holes is no line: it needs a point to be seen. */
function alone(plot: uPlot, index: number): number[] {
  const values = plot.data[index] ?? [];
  return [...values.keys()].filter((at) => values[at] != null && values[at - 1] == null && values[at + 1] == null);
}

/** Steps between the marks of an axis of counts. */
const WHOLE = Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

const bars = uPlot.paths.bars?.({ size: [0.8, 40] });

function options({ series, write, height = 200, together, max, whole = false, isDark, time }: Properties & { isDark: boolean; time: string }, width: number): uPlot.Options {
  const colours = isDark ? COLOURS.dark : COLOURS.light;
  const ink = isDark ? "#a3abba" : "#5c6474";
  const line = isDark ? "#2b313c" : "#e6e9ef";
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "12px system-ui, sans-serif" };
  return {
    width,
    height,
    ms: 1,
    tzDate: (at) => new Date(at),
    cursor: { y: false, ...(together === undefined ? {} : { sync: { key: together } }) },
    legend: { live: true },
    scales: { x: { time: true }, y: { range: (_, low, high) => [Math.min(0, low), max ?? (high <= 0 ? 1 : high * 1.08)] } },
    axes: [{ ...axis, incrs: (plot) => timeSteps(plot.data[0]), values: ticks }, { ...axis, size: 64, ...(whole ? { incrs: WHOLE } : {}), values: (_, splits) => splits.map((value) => write(value)) }],
    series: [
      { label: time, value: (_, at: number | null) => (at === null ? "–" : instant(at, viewerZone(), "minute")) },
      ...series.map(({ label, colour, kind = "line" }): uPlot.Series => {
        const stroke = colours[colour % colours.length];
        return {
          label,
          stroke,
          width: kind === "bars" ? 0 : 1.5,
          points: { show: false, ...(kind === "bars" ? {} : { filter: alone }) },
          spanGaps: false,
          value: (_, value: number | null) => (value === null ? "–" : write(value)),
          ...(kind === "bars" ? { fill: stroke, ...(bars === undefined ? {} : { paths: bars }) } : {}),
          ...(kind === "area" ? { fill: `${stroke ?? ink}33` } : {}),
        };
      }),
    ],
  };
}

export function Chart(properties: Properties) {
  const { isDark } = useAppearance();
  const { t } = useTranslation("overview");
  const time = t("charts.time");
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const { instants, series, label, write } = properties;
  // New lines make a new chart; new figures only update it.
  const shape = JSON.stringify([series.map(({ label: name, colour, kind }) => [name, colour, kind]), properties.height, properties.max, isDark, time]);
  const latest = useRef(properties);
  useEffect(() => {
    latest.current = properties;
  });
  useEffect(() => {
    const element = holder.current;
    if (element === null) return;
    const data = () => [latest.current.instants, ...latest.current.series.map((each) => each.values)] as uPlot.AlignedData;
    const made = new uPlot(options({ ...latest.current, isDark, time }, Math.max(200, element.clientWidth)), data(), element);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: Math.max(200, element.clientWidth), height: latest.current.height ?? 200 }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape, isDark, time]);
  useEffect(() => {
    plot.current?.setData([instants, ...series.map((each) => each.values)] as uPlot.AlignedData);
  }, [instants, series]);
  const last = instants.length - 1;
  const summary = series
    .map(({ label: name, values }) => {
      const value = values[last];
      return `${name} ${value === null || value === undefined ? "–" : write(value)}`;
    })
    .join(", ");
  return (
    <figure className="chart" aria-label={`${label}: ${summary}`}>
      <figcaption className="chart-title">{label}</figcaption>
      <div ref={holder} />
    </figure>
  );
}
