/** Maintenance windows: where they are in time, and what of a plan the node would refuse. */
import type { Schema } from "../api/client";

type Span = Pick<Schema<"MaintenanceWindow">, "starts_at" | "ends_at">;

export type WindowState = "running" | "planned" | "over";

/** Where a window is now. The list may still hold one that has just ended. */
export function windowState({ starts_at, ends_at }: Span, now: number): WindowState {
  if (now >= ends_at) return "over";
  return now >= starts_at ? "running" : "planned";
}

/** Longest window, ms. */
export const WINDOW_MS_MAX = 30 * 86_400_000;

/** What is wrong with a plan; `undefined`: nothing. */
export function planProblem(from: number | undefined, until: number | undefined, now: number): "range_needed" | "range_long" | "range_past" | undefined {
  if (from === undefined || until === undefined || until <= from) return "range_needed";
  if (until <= now) return "range_past";
  return until - from > WINDOW_MS_MAX ? "range_long" : undefined;
}
