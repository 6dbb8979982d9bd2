/** Points as comma-separated values, for spreadsheets. */
import { OUTCOMES, type Point, type Times } from "./figures";

const NAMES = ["fires", ...OUTCOMES, "failures"] as const;

function timesNames(of: "lateness" | "duration", bounds: readonly number[]): string[] {
  return [
    ...["count", "mean_ms", "p50_ms", "p90_ms", "p99_ms", "max_ms"].map((name) => `${of}_${name}`),
    ...bounds.map((bound) => `${of}_up_to_${bound}_ms`),
    `${of}_above`,
  ];
}

function timesValues(times: Times, bounds: readonly number[]): (number | null | undefined)[] {
  const { count, mean_ms, p50_ms, p90_ms, p99_ms, max_ms } = times;
  return [count, mean_ms, p50_ms, p90_ms, p99_ms, max_ms, ...Array.from({ length: bounds.length + 1 }, (_, index) => times.buckets[index] ?? 0)];
}

/** A line for each point: numbers and instants only, so nothing needs quotes. What is not known is empty. */
export function csvOf(points: readonly Point[], bounds: readonly number[]): string {
  const head = ["start", "start_ms", ...NAMES, ...timesNames("lateness", bounds), ...timesNames("duration", bounds)];
  const lines = points.map((point) => [
    new Date(point.start).toISOString(),
    point.start,
    ...NAMES.map((name) => point[name]),
    ...timesValues(point.lateness, bounds),
    ...timesValues(point.duration, bounds),
  ]);
  return [head, ...lines].map((line) => line.map((value) => value ?? "").join(",")).join("\r\n") + "\r\n";
}
