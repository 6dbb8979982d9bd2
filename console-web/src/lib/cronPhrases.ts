/** The words of `cronWords` in each language. */
import type { Language } from "../i18n";
import type { Unit } from "./cronBuilder";

export interface Together {
  /** Times of day, or else a beat. */
  times: string[] | undefined;
  beat: string;
  /** Empty: every day. */
  days: string;
  /** Empty: every month. */
  months: string;
  /** Empty: every year. */
  years: string;
}

export interface Phrases {
  every: (count: number, unit: Unit) => string;
  /** Where in the minute or hour the beat begins; nothing for its start. */
  from: (at: number, unit: "second" | "minute") => string;
  /** The hour from which steps of hours count; nothing for midnight. */
  hours: (from: number) => string;
  between: (from: string, to: string) => string;
  weekdays: (values: number[]) => string;
  weekdayRange: (from: number, to: number) => string;
  nthWeekday: (nth: number, weekday: number) => string;
  monthDays: (values: number[]) => string;
  monthDayRange: (from: number, to: number) => string;
  lastDay: (before: number, isWorkday: boolean) => string;
  nearWorkday: (day: number) => string;
  months: (values: number[]) => string;
  years: (values: number[]) => string;
  together: (parts: Together) => string;
}

const DAYS_EN = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS_EN = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const NTH_EN = ["last", "first", "second", "third", "fourth", "fifth"];
const dayEn = (day: number) => DAYS_EN[day - 1] ?? "";

function listEn(items: readonly string[]): string {
  return items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} and ${items.at(-1) ?? ""}`;
}

const en: Phrases = {
  every: (count, unit) => (count === 1 ? `every ${unit}` : `every ${count} ${unit}s`),
  from: (at, unit) => (at === 0 ? "" : ` at ${unit} ${at}`),
  hours: (from) => (from === 0 ? "" : ` from ${String(from).padStart(2, "0")}:00`),
  between: (from, to) => ` from ${from} to ${to}`,
  weekdays: (values) => `on ${listEn(values.map(dayEn))}`,
  weekdayRange: (from, to) => `${dayEn(from)} to ${dayEn(to)}`,
  nthWeekday: (nth, weekday) => `on the ${NTH_EN[nth] ?? ""} ${dayEn(weekday)} of the month`,
  monthDays: (values) => `on day ${listEn(values.map(String))} of the month`,
  monthDayRange: (from, to) => `on days ${from} to ${to} of the month`,
  lastDay: (before, isWorkday) => {
    const day = before === 0 ? "the last day of the month" : `${before} days before the last of the month`;
    if (isWorkday) return `on the weekday nearest to ${day}`;
    return before === 0 ? `on ${day}` : day;
  },
  nearWorkday: (day) => `on the weekday nearest to day ${day} of the month`,
  months: (values) => `in ${listEn(values.map((month) => MONTHS_EN[month - 1] ?? ""))}`,
  years: (values) => `in ${listEn(values.map(String))}`,
  together: ({ times, beat, days, months, years }) => {
    const on = days === "" ? "every day" : days;
    const head = times === undefined ? [beat, days] : [`${on} at ${listEn(times)}`];
    return [...head, months, years].filter((part) => part !== "").join(", ");
  },
};

const DAYS_ZH = ["日", "一", "二", "三", "四", "五", "六"];
const dayZh = (day: number) => `周${DAYS_ZH[day - 1] ?? ""}`;
const UNITS_ZH = { second: "秒", minute: "分钟", hour: "小时" };

const zh: Phrases = {
  every: (count, unit) => (count === 1 ? `每${UNITS_ZH[unit]}` : `每 ${count} ${UNITS_ZH[unit]}`),
  from: (at, unit) => (at === 0 ? "" : `（第 ${at} ${unit === "second" ? "秒" : "分"}）`),
  hours: (from) => (from === 0 ? "" : `（自 ${String(from).padStart(2, "0")}:00 起）`),
  between: (from, to) => `（${from} 至 ${to}）`,
  weekdays: (values) => `每${values.map(dayZh).join("、")}`,
  weekdayRange: (from, to) => `${dayZh(from)}至${dayZh(to)}`,
  nthWeekday: (nth, weekday) => (nth === 0 ? `每月最后一个${dayZh(weekday)}` : `每月第 ${nth} 个${dayZh(weekday)}`),
  monthDays: (values) => `每月 ${values.join("、")} 日`,
  monthDayRange: (from, to) => `每月 ${from} 至 ${to} 日`,
  lastDay: (before, isWorkday) => {
    const day = before === 0 ? "每月最后一天" : `每月倒数第 ${before + 1} 天`;
    return isWorkday ? `最接近${day}的周一至周五` : day;
  },
  nearWorkday: (day) => `最接近每月 ${day} 日的周一至周五`,
  months: (values) => `限 ${values.join("、")} 月`,
  years: (values) => `限 ${values.join("、")} 年`,
  together: ({ times, beat, days, months, years }) => {
    const on = days === "" && times !== undefined ? "每天" : days;
    const head = times === undefined ? [on, beat].filter((part) => part !== "").join("，") : `${on} ${times.join("、")}`;
    return [head, months, years].filter((part) => part !== "").join("，");
  },
};

export const PHRASES: Record<Language, Phrases> = { en, zh };
