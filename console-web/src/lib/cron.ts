/** Quartz expressions taken apart, as far as the console explains and builds them. The node alone judges them. */

/** What a field names. */
export type Part =
  | { is: "any" }
  | { is: "values"; values: number[] }
  | { is: "range"; from: number; to: number }
  | { is: "step"; from: number; by: number }
  /** Days of a month only: the last, so many before it; the one of Monday to Friday that is nearest. */
  | { is: "last_day"; before: number; isWorkday: boolean }
  | { is: "near_workday"; day: number }
  /** Days of a week only: the nth, or (0) the last of a month. */
  | { is: "nth_weekday"; weekday: number; nth: number };

export interface Cron {
  second: Part;
  minute: Part;
  hour: Part;
  day: Part;
  month: Part;
  /** 1 is Sunday. */
  weekday: Part;
  year: Part;
}

const MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];

/** Days of the week as Quartz names them; their number is the place from 1. */
export const WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

interface Range {
  min: number;
  max: number;
  names?: readonly string[];
}

function numberOf(text: string, { min, max, names }: Range): number | undefined {
  const named = names?.indexOf(text.toUpperCase()) ?? -1;
  const value = named >= 0 ? named + min : /^\d{1,4}$/.test(text) ? Number(text) : undefined;
  return value !== undefined && value >= min && value <= max ? value : undefined;
}

function stepOf(text: string, range: Range): Part | undefined {
  const [start = "", by = "", ...rest] = text.split("/");
  const from = start === "*" ? range.min : numberOf(start, range);
  if (from === undefined || rest.length > 0 || !/^[1-9]\d{0,3}$/.test(by) || Number(by) > range.max) return undefined;
  return from === range.min && by === "1" ? { is: "any" } : { is: "step", from, by: Number(by) };
}

/** The ordinary forms: `*`, `5`, `1,2`, `1-5`, `0/10`. */
function partOf(text: string, range: Range): Part | undefined {
  if (text === "*" || text === "?") return { is: "any" };
  if (text.includes("/")) return text.includes(",") ? undefined : stepOf(text, range);
  const items = text.split(",").map((item) => item.split("-").map((end) => numberOf(end, range)));
  const values: number[] = [];
  for (const [from, to, ...rest] of items) {
    if (from === undefined || rest.length > 0) return undefined;
    const isRange = to !== undefined;
    if (isRange && to < from) return undefined;
    if (isRange && items.length === 1) return { is: "range", from, to };
    for (let value = from; value <= (to ?? from); value += 1) values.push(value);
  }
  // `1-x`: a range whose end is none.
  if (items.some((item) => item.includes(undefined))) return undefined;
  return { is: "values", values: [...new Set(values)].sort((a, b) => a - b) };
}

function dayOf(text: string): Part | undefined {
  const upper = text.toUpperCase();
  const last = /^L(?:-(\d{1,2}))?(W)?$/.exec(upper);
  if (last !== null) return { is: "last_day", before: Number(last[1] ?? 0), isWorkday: last[2] !== undefined };
  const near = /^(\d{1,2})W$/.exec(upper);
  if (near !== null) return { is: "near_workday", day: Number(near[1]) };
  return partOf(text, { min: 1, max: 31 });
}

function weekdayOf(text: string): Part | undefined {
  const range: Range = { min: 1, max: 7, names: WEEKDAYS };
  const upper = text.toUpperCase();
  if (upper === "L") return { is: "values", values: [7] };
  const nth = /^(\w+)#([1-5])$/.exec(upper);
  const last = /^(\w+)L$/.exec(upper);
  const weekday = numberOf(nth?.[1] ?? last?.[1] ?? "", range);
  if (weekday !== undefined) return { is: "nth_weekday", weekday, nth: nth === null ? 0 : Number(nth[2]) };
  return partOf(text, range);
}

/** The fields of an expression; `undefined` where it is none, or one of a form that is not told here. */
export function parseCron(text: string): Cron | undefined {
  const fields = text.trim().split(/\s+/);
  if (fields.length < 6 || fields.length > 7) return undefined;
  const [second = "", minute = "", hour = "", day = "", month = "", weekday = "", year = "*"] = fields;
  const parts = {
    second: partOf(second, { min: 0, max: 59 }),
    minute: partOf(minute, { min: 0, max: 59 }),
    hour: partOf(hour, { min: 0, max: 23 }),
    day: dayOf(day),
    month: partOf(month, { min: 1, max: 12, names: MONTHS }),
    weekday: weekdayOf(weekday),
    year: partOf(year, { min: 1970, max: 2199 }),
  };
  const { second: s, minute: m, hour: h, day: d, month: mo, weekday: w, year: y } = parts;
  if (s === undefined || m === undefined || h === undefined || d === undefined || mo === undefined || w === undefined || y === undefined) return undefined;
  return { second: s, minute: m, hour: h, day: d, month: mo, weekday: w, year: y };
}

/** The values of a field that lists them. */
export function valuesOf(part: Part): number[] | undefined {
  if (part.is === "values") return part.values;
  if (part.is === "range") return Array.from({ length: part.to - part.from + 1 }, (_, index) => part.from + index);
  return undefined;
}
