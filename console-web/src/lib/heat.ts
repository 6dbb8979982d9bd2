/** Fires per minute of the coming day as rows of an hour each. */
import { instant } from "./time";

const MINUTE = 60_000;

/** An hour of the viewer's day. */
export interface HeatRow {
  /** Epoch ms of its first known minute. */
  at: number;
  /** `09:00` */
  label: string;
  /** Sixty; `undefined` before the first minute and after the last. */
  cells: (number | undefined)[];
}

/** Puts minutes from an instant on into rows by the wall clock of a zone; the first and the last may be in part. */
export function heatRows(from: number, minutes: readonly number[], zone: string): HeatRow[] {
  const rows: HeatRow[] = [];
  let last = "";
  minutes.forEach((fires, index) => {
    const at = from + index * MINUTE;
    const wall = instant(at, zone, "minute");
    const hour = wall.slice(0, 13);
    const minute = Number(wall.slice(14, 16));
    const current = rows.at(-1);
    // An hour that the clocks repeat is a row of its own.
    if (current === undefined || hour !== last || current.cells[minute] !== undefined) {
      const cells = Array.from<number | undefined>({ length: 60 });
      cells[minute] = fires;
      rows.push({ at, label: `${wall.slice(11, 13)}:00`, cells });
      last = hour;
    } else {
      current.cells[minute] = fires;
    }
  });
  return rows;
}

/** Shades of a cell, from nothing on. */
export const SHADES = 6;

/** The shade of a count: 0 for none, else 1 to 5, by its logarithm, so that a few beside many are still seen. */
export function shade(fires: number, most: number): number {
  if (fires <= 0 || most <= 0) return 0;
  if (most === 1) return SHADES - 1;
  return 1 + Math.round((Math.log(fires) / Math.log(most)) * (SHADES - 2));
}

/** A minute with many fires, and the tasks that have most of them. */
export interface Peak {
  /** Epoch ms. */
  minute: number;
  fires: number;
  tasks: { task: string; name: string; tenant: string; fires: number }[];
}

/** Fires per minute of the coming day. */
export interface Forecast {
  /** Start of the first minute, epoch ms. */
  from: number;
  /** Fires in each minute. */
  minutes: number[];
  /** Tasks that could not be counted. */
  left_out: number;
  /** The minutes with the most fires, the highest first. */
  peaks: Peak[];
}
