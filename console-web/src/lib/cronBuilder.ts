/** Schedules that one chooses instead of writing an expression, and the expressions that say the same. */
import { parseCron, valuesOf, WEEKDAYS, type Cron } from "./cron";

/** A time of day. */
export interface TimeOfDay {
  hour: number;
  minute: number;
  second: number;
}

/** Which day of a month: by number, the last, or the nth (0: the last) of a weekday (1 is Sunday). */
export type MonthDay = { is: "day"; day: number } | { is: "last" } | { is: "nth"; nth: number; weekday: number };

export type Unit = "second" | "minute" | "hour";

/** What the builder knows. */
export type Built =
  | { kind: "every"; count: number; unit: Unit }
  | { kind: "daily"; time: TimeOfDay }
  | { kind: "weekly"; weekdays: number[]; time: TimeOfDay }
  | { kind: "monthly"; on: MonthDay; time: TimeOfDay };

/**
 * How many seconds, minutes and hours there can be between two fires of an expression: what does not divide the minute,
 * hour or day would restart with each of them.
 */
export const COUNTS: Record<Unit, readonly number[]> = {
  second: [1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30],
  minute: [1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30],
  hour: [1, 2, 3, 4, 6, 8, 12],
};

function every(count: number, unit: Unit): string {
  const field = count === 1 ? "*" : `0/${count}`;
  if (unit === "second") return `${field} * * * * ?`;
  return unit === "minute" ? `0 ${field} * * * ?` : `0 0 ${field} * * ?`;
}

function monthDay(on: MonthDay): string {
  if (on.is === "day") return `${on.day} * ?`;
  if (on.is === "last") return "L * ?";
  return `? * ${WEEKDAYS[on.weekday - 1] ?? "SUN"}${on.nth === 0 ? "L" : `#${on.nth}`}`;
}

/** The expression of a built schedule. */
export function toCron(built: Built): string {
  if (built.kind === "every") return every(built.count, built.unit);
  const { hour, minute, second } = built.time;
  const time = `${second} ${minute} ${hour}`;
  if (built.kind === "daily") return `${time} * * ?`;
  if (built.kind === "monthly") return `${time} ${monthDay(built.on)}`;
  const days = [...built.weekdays].sort((a, b) => a - b).map((day) => WEEKDAYS[day - 1]);
  return `${time} ? * ${days.join(",")}`;
}

function timeOf({ second, minute, hour }: Cron): TimeOfDay | undefined {
  const [s, m, h] = [second, minute, hour].map((part) => (part.is === "values" && part.values.length === 1 ? part.values[0] : undefined));
  return s === undefined || m === undefined || h === undefined ? undefined : { hour: h, minute: m, second: s };
}

function everyOf({ second, minute, hour }: Cron): Built | undefined {
  const isZero = (part: Cron["second"]) => part.is === "values" && part.values.length === 1 && part.values[0] === 0;
  const countOf = (part: Cron["second"]) => (part.is === "any" ? 1 : part.is === "step" && part.from === 0 ? part.by : undefined);
  const made = (count: number | undefined, unit: Unit): Built | undefined =>
    count !== undefined && COUNTS[unit].includes(count) ? { kind: "every", count, unit } : undefined;
  if (minute.is === "any" && hour.is === "any" && !isZero(second)) return made(countOf(second), "second");
  if (isZero(second) && hour.is === "any" && !isZero(minute)) return made(countOf(minute), "minute");
  return isZero(second) && isZero(minute) ? made(countOf(hour), "hour") : undefined;
}

/** The built schedule that says the same as an expression; `undefined` where only the expression can say it. */
export function fromCron(text: string): Built | undefined {
  const cron = parseCron(text);
  if (cron === undefined || cron.month.is !== "any" || cron.year.is !== "any") return undefined;
  const { day, weekday } = cron;
  const time = timeOf(cron);
  if (day.is === "any" && weekday.is === "any") return time === undefined ? everyOf(cron) : { kind: "daily", time };
  if (time === undefined) return undefined;
  if (day.is === "any") {
    if (weekday.is === "nth_weekday") return { kind: "monthly", on: { is: "nth", nth: weekday.nth, weekday: weekday.weekday }, time };
    const weekdays = valuesOf(weekday);
    return weekdays === undefined ? undefined : { kind: "weekly", weekdays, time };
  }
  if (weekday.is !== "any") return undefined;
  if (day.is === "last_day" && day.before === 0 && !day.isWorkday) return { kind: "monthly", on: { is: "last" }, time };
  const only = day.is === "values" && day.values.length === 1 ? day.values[0] : undefined;
  return only === undefined ? undefined : { kind: "monthly", on: { is: "day", day: only }, time };
}
