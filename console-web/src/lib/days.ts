/** Days of the calendar as text, `2026-10-01`; no instant and no time zone has a part in it. */

/** The days that a calendar may name. */
export const FIRST_DAY = "1970-01-01";
export const LAST_DAY = "2199-12-31";

const DAY_MS = 86_400_000;

/** Words of the API for the days of the week, Monday first. */
export const WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
export type Weekday = (typeof WEEKDAYS)[number];

/** `undefined` where there is no such day (2026-02-30), or where it lies beyond what a calendar may name. */
export function dayOf(year: number, month: number, day: number): string | undefined {
  const date = new Date(Date.UTC(year, month - 1, day));
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  const text = date.toISOString().slice(0, 10);
  return text < FIRST_DAY || text > LAST_DAY ? undefined : text;
}

/** `10-01`, the same day of every year; `undefined` where no year has it. */
export function yearlyOf(month: number, day: number): string | undefined {
  // A leap year has every day.
  return dayOf(2000, month, day)?.slice(5);
}

/** Whether it is one day, `2026-10-01`, and not the same of every year, `10-01`. */
export function isOneDay(text: string): boolean {
  return text.length === 10;
}

/** So many days later; earlier, where negative. */
export function plusDays(day: string, count: number): string {
  return new Date(Date.parse(day) + count * DAY_MS).toISOString().slice(0, 10);
}

/** Its day of the week: 0 is Monday. */
export function weekdayIndex(day: string): number {
  return (new Date(day).getUTCDay() + 6) % 7;
}

/** Its day of the week, in the API's word. */
export function weekdayOf(day: string): Weekday {
  return WEEKDAYS[weekdayIndex(day)] ?? "mon";
}

/** Every day from one to another, both included, in whichever order they are named; at most `most`. */
export function daysBetween(one: string, other: string, most = 1_000): string[] {
  const [from, until] = one <= other ? [one, other] : [other, one];
  const days: string[] = [];
  for (let day = from; day <= until && days.length < most; day = plusDays(day, 1)) days.push(day);
  return days;
}

/** The days of a month (1 to 12), in order. */
export function daysOfMonth(year: number, month: number): string[] {
  const days: string[] = [];
  for (let number = 1; number <= 31; number += 1) {
    const day = dayOf(year, month, number);
    if (day !== undefined) days.push(day);
  }
  return days;
}

/** Neighbouring days of a list, taken together. */
export interface DayRange {
  from: string;
  until: string;
  count: number;
}

/** A list of days as ranges, in order; days of every year come first, each by itself. */
export function rangesOf(days: readonly string[]): DayRange[] {
  const sorted = [...new Set(days)].sort((a, b) => Number(isOneDay(a)) - Number(isOneDay(b)) || a.localeCompare(b));
  const ranges: DayRange[] = [];
  for (const day of sorted) {
    const last = ranges.at(-1);
    if (last !== undefined && isOneDay(day) && isOneDay(last.until) && plusDays(last.until, 1) === day) {
      last.until = day;
      last.count += 1;
    } else {
      ranges.push({ from: day, until: day, count: 1 });
    }
  }
  return ranges;
}
