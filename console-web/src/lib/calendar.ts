/** What a calendar says of a day, and how a person changes that. The node reads calendars the same way. */
import type { Schema } from "../api/client";
import { isOneDay, weekdayOf, type Weekday } from "./days";

/** What is written of a calendar: every field of it. */
export type CalendarSpec = Required<Schema<"Calendar">>;

/** Most days that a calendar may list, excluded ones and working days together. */
export const DAYS_MAX = 2_000;

/** Most versions that the node keeps of a calendar. */
export const VERSIONS_MAX = 100;

/** Saturdays and Sundays are off: what a new calendar begins with. */
export const WEEKENDS_OFF: CalendarSpec = {
  description: "",
  excluded_weekdays: ["sat", "sun"],
  excluded_days: [],
  workdays: [],
  excluded_hours: [],
};

/** The spec in an answer of the API. */
export function specOf(version: Schema<"CalendarVersion">): CalendarSpec {
  const { description, excluded_weekdays, excluded_days, workdays, excluded_hours } = version;
  return { description, excluded_weekdays, excluded_days, workdays, excluded_hours };
}

/** Why a day is, or is not, a working day. `plain`: nothing names it. */
export type DayReason = "plain" | "weekday" | "excluded" | "excluded_yearly" | "workday" | "workday_yearly";

/** What a calendar says of one day. */
export interface DayState {
  works: boolean;
  reason: DayReason;
}

/** Answers for many days of one calendar. */
export function reader(spec: CalendarSpec): (day: string) => DayState {
  const weekdays = new Set(spec.excluded_weekdays);
  const excluded = new Set(spec.excluded_days);
  const workdays = new Set(spec.workdays);
  return (day) => {
    const yearly = day.slice(5);
    // Working days win over everything; the node does it in this order, too.
    if (workdays.has(day)) return { works: true, reason: "workday" };
    if (workdays.has(yearly)) return { works: true, reason: "workday_yearly" };
    if (excluded.has(day)) return { works: false, reason: "excluded" };
    if (excluded.has(yearly)) return { works: false, reason: "excluded_yearly" };
    if (weekdays.has(weekdayOf(day))) return { works: false, reason: "weekday" };
    return { works: true, reason: "plain" };
  };
}

/**
 * The calendar with these days (`2026-10-01` or, of every year, `10-01`) as working days, or as days off.
 * Of single days only what is needed is written: nothing for a day that is so already by its weekday.
 * `stuck` are single days that a working day of every year keeps from being off.
 */
export function withDays(spec: CalendarSpec, days: readonly string[], works: boolean): { spec: CalendarSpec; stuck: string[] } {
  const excluded = new Set(spec.excluded_days);
  const workdays = new Set(spec.workdays);
  const [into, outOf] = works ? [workdays, excluded] : [excluded, workdays];
  for (const day of days) {
    into.delete(day);
    outOf.delete(day);
    if (!isOneDay(day)) into.add(day);
  }
  const plain = reader({ ...spec, excluded_days: [...excluded], workdays: [...workdays] });
  const stuck: string[] = [];
  for (const day of days.filter(isOneDay)) {
    const { works: already, reason } = plain(day);
    if (already === works) continue;
    if (reason === "workday_yearly") stuck.push(day);
    else into.add(day);
  }
  return { spec: { ...spec, excluded_days: [...excluded].sort(), workdays: [...workdays].sort() }, stuck };
}

/** Days that shall be working days, or days off. */
export interface DayStep {
  days: readonly string[];
  works: boolean;
}

/** One step after the other; a later one decides. */
export function withSteps(spec: CalendarSpec, steps: readonly DayStep[]): { spec: CalendarSpec; stuck: string[] } {
  const stuck: string[] = [];
  for (const { days, works } of steps) {
    const done = withDays(spec, days, works);
    spec = done.spec;
    stuck.push(...done.stuck);
  }
  return { spec, stuck };
}

/** The calendar without these entries, whichever list has them. */
export function withoutDays(spec: CalendarSpec, days: readonly string[]): CalendarSpec {
  const gone = new Set(days);
  const rest = (list: string[]) => list.filter((day) => !gone.has(day));
  return { ...spec, excluded_days: rest(spec.excluded_days), workdays: rest(spec.workdays) };
}

/** The calendar with a weekday off, or not. */
export function withWeekday(spec: CalendarSpec, weekday: Weekday, off: boolean): CalendarSpec {
  const rest = spec.excluded_weekdays.filter((each) => each !== weekday);
  return { ...spec, excluded_weekdays: off ? [...rest, weekday] : rest };
}

/** How many single days of a year the calendar names. */
export function namedInYear(spec: CalendarSpec, year: number): { excluded: number; workdays: number } {
  const count = (list: readonly string[]) => list.filter((day) => day.startsWith(`${year}-`)).length;
  return { excluded: count(spec.excluded_days), workdays: count(spec.workdays) };
}

/** A range of hours, `22:00-06:00`, in minutes; `undefined` where the node would refuse it. */
export function hoursOf(text: string): { from: number; until: number } | undefined {
  const found = /^(\d\d):(\d\d)-(\d\d):(\d\d)$/.exec(text);
  if (found === null) return undefined;
  const [fromHour = 0, fromMinute = 0, untilHour = 0, untilMinute = 0] = found.slice(1).map(Number);
  const [from, until] = [fromHour * 60 + fromMinute, untilHour * 60 + untilMinute];
  const isTime = fromMinute < 60 && untilMinute < 60 && from < 1_440 && until <= 1_440;
  const isWholeDay = from === 0 && until === 1_440;
  return isTime && from !== until && !isWholeDay ? { from, until } : undefined;
}

/** Ranges of hours as people type them (`9:00 - 12:00，22：00~6:00`), as the node wants them; what it would refuse stays as it is. */
export function readHours(text: string): string[] {
  return text
    .replaceAll("：", ":")
    .replaceAll(/\s*[-~～–—至]\s*/g, "-")
    .replaceAll(/(?<!\d)(\d):/g, "0$1:")
    .split(/[,，;；、\s]+/)
    .filter((range) => range !== "");
}

/** The parts of a day that ranges of hours leave out, in minutes, in order; a range past midnight has two. */
export function excludedParts(ranges: readonly string[]): { from: number; until: number }[] {
  return ranges
    .flatMap((text) => {
      const hours = hoursOf(text);
      if (hours === undefined) return [];
      const { from, until } = hours;
      if (from < until) return [hours];
      return [{ from, until: 1_440 }, ...(until > 0 ? [{ from: 0, until }] : [])];
    })
    .sort((a, b) => a.from - b.from);
}

/** Whether two calendars say the same, in whatever order. */
export function isSame(one: CalendarSpec, other: CalendarSpec): boolean {
  const key = (spec: CalendarSpec) =>
    JSON.stringify([spec.description, ...[spec.excluded_weekdays, spec.excluded_days, spec.workdays, spec.excluded_hours].map((list) => [...list].sort())]);
  return key(one) === key(other);
}
