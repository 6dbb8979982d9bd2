/** Figures of backfills. */
import type { Schema } from "../api/client";

/** Fires that are counted before a backfill is made; what is more is "at least". */
export const MAX_COUNTED = 1_000;

/** The fires of a preview before `until`; `isAll` unless the preview ends before that. */
export function countFires(preview: readonly Schema<"Preview">[], until: number): { fires: number; isAll: boolean } {
  const fires = preview.filter(({ kind, fire_time }) => kind === "fires" && fire_time < until).length;
  return { fires, isAll: fires < MAX_COUNTED };
}

/** How far a backfill has come through its range, 0 to 100. */
export function progressOf({ from, until, next_at, status }: Pick<Schema<"Backfill">, "from" | "until" | "next_at" | "status">): number {
  if (status === "done" || until <= from) return 100;
  return Math.round(Math.min(1, Math.max(0, (next_at - from) / (until - from))) * 100);
}
