/** A chart over time (uPlot); its name carries the last figures, for those who cannot see it. */
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useAppearance } from "../app/theme";
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

/** Steps between the marks of an axis of counts. */
const WHOLE = Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

const bars = uPlot.paths.bars?.({ size: [0.8, 40] });

function options({ series, write, height = 200, together, max, whole = false, isDark }: Properties & { isDark: boolean }, width: number): uPlot.Options {
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
    axes: [axis, { ...axis, size: 64, ...(whole ? { incrs: WHOLE } : {}), values: (_, splits) => splits.map((value) => write(value)) }],
    series: [
      { label: "", value: (_, at: number | null) => (at === null ? "–" : instant(at, viewerZone(), "minute")) },
      ...series.map(({ label, colour, kind = "line" }): uPlot.Series => {
        const stroke = colours[colour % colours.length];
        return {
          label,
          stroke,
          width: kind === "bars" ? 0 : 1.5,
          points: { show: false },
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
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const { instants, series, label, write } = properties;
  // A chart is made anew for other lines, and only fed for other figures.
  const shape = JSON.stringify([series.map(({ label: name, colour, kind }) => [name, colour, kind]), properties.height, properties.max, isDark]);
  const latest = useRef(properties);
  useEffect(() => {
    latest.current = properties;
  });
  useEffect(() => {
    const element = holder.current;
    if (element === null) return;
    const data = () => [latest.current.instants, ...latest.current.series.map((each) => each.values)] as uPlot.AlignedData;
    const made = new uPlot(options({ ...latest.current, isDark }, Math.max(200, element.clientWidth)), data(), element);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: Math.max(200, element.clientWidth), height: latest.current.height ?? 200 }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape, isDark]);
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
