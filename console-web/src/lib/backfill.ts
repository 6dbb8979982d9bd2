/** Figures of backfills. */
import type { Schema } from "../api/client";

type Line = Schema<"Preview">;

/** Fires in a page of the preview: the most that the API gives. */
export const PAGE = 1_000;

/** Pages that are read to count; a range with more fires is told by its rate. */
const PAGES = 10;

/** A backfill of more than these asks first. */
export const ASKS_ABOVE = 300;

/** What is known of the fires in a range. */
export interface Count {
  fires: number;
  /** Otherwise only so many were counted, and `about` goes by how close together they are. */
  isAll: boolean;
  about: number;
}

/** Counts the fires from `from` up to before `until`, a page after the other; `read` gives the lines after an instant. */
export async function countFires(read: (after: number) => Promise<readonly Line[]>, from: number, until: number): Promise<Count> {
  let fires = 0;
  // The first instant belongs to the range, and "after" does not name itself.
  let after = from - 1;
  for (let page = 0; page < PAGES; page += 1) {
    const lines = await read(after);
    const found = lines.filter(({ kind }) => kind === "fires");
    fires += found.filter(({ fire_time: at }) => at < until).length;
    const last = found.at(-1)?.fire_time;
    if (last === undefined || last >= until || found.length < PAGE) return { fires, isAll: true, about: fires };
    after = last;
  }
  return { fires, isAll: false, about: rounded((fires * (until - from)) / (after + 1 - from)) };
}

/** To two digits: an estimate looks like one. */
function rounded(count: number): number {
  return Number(count.toPrecision(2));
}

/** How far a backfill has come through its range, 0 to 100. */
export function progressOf({ from, until, next_at, status }: Pick<Schema<"Backfill">, "from" | "until" | "next_at" | "status">): number {
  if (status === "done" || until <= from) return 100;
  return Math.round(Math.min(1, Math.max(0, (next_at - from) / (until - from))) * 100);
}
