/** Common Quartz expressions in words. What is not common stays an expression: half an explanation misleads. */
import type { Language } from "../i18n";
import { parseCron, valuesOf, type Cron, type Part } from "./cron";
import { PHRASES, type Phrases } from "./cronPhrases";

/** Times of day that are listed one by one; more are no words any more. */
const MAX_TIMES = 4;

const two = (value: number) => String(value).padStart(2, "0");

/** The only value of a field. */
function only(part: Part): number | undefined {
  return part.is === "values" && part.values.length === 1 ? part.values[0] : undefined;
}

/** Every combination of listed hours, minutes and seconds: `09:00`. */
function clockTimes({ second, minute, hour }: Cron): string[] | undefined {
  const [seconds, minutes, hours] = [valuesOf(second), valuesOf(minute), valuesOf(hour)];
  if (seconds === undefined || minutes === undefined || hours === undefined) return undefined;
  if (seconds.length * minutes.length * hours.length > MAX_TIMES) return undefined;
  return hours.flatMap((h) => minutes.flatMap((m) => seconds.map((s) => `${two(h)}:${two(m)}${s === 0 ? "" : `:${two(s)}`}`)));
}

/** How often, where it is a beat: `every 5 minutes`. */
function beat({ second, minute, hour }: Cron, say: Phrases): string | undefined {
  const within = hour.is === "any" ? "" : hourSpan(hour, say);
  if (minute.is === "any" && (second.is === "any" || second.is === "step") && within !== undefined) {
    return second.is === "any" ? say.every(1, "second") + within : say.every(second.by, "second") + say.from(second.from, "second") + within;
  }
  const at = only(second);
  if (at === undefined) return undefined;
  const seconds = say.from(at, "second");
  if (minute.is === "any" && within !== undefined) return say.every(1, "minute") + seconds + within;
  if (minute.is === "step" && within !== undefined) return say.every(minute.by, "minute") + say.from(minute.from, "minute") + seconds + within;
  const minutes = only(minute);
  if (minutes === undefined || at !== 0) return undefined;
  if (hour.is === "any") return say.every(1, "hour") + say.from(minutes, "minute");
  if (hour.is === "step") return say.every(hour.by, "hour") + say.hours(hour.from) + say.from(minutes, "minute");
  return hour.is === "range" ? say.every(1, "hour") + say.from(minutes, "minute") + say.between(`${two(hour.from)}:${two(minutes)}`, `${two(hour.to)}:${two(minutes)}`) : undefined;
}

/** The hours within which a beat goes on. */
function hourSpan(hour: Part, say: Phrases): string | undefined {
  if (hour.is === "range") return say.between(`${two(hour.from)}:00`, `${two(hour.to)}:59`);
  const at = only(hour);
  return at === undefined ? undefined : say.between(`${two(at)}:00`, `${two(at)}:59`);
}

/** On which days; empty for all, `undefined` for what has no words here. */
function days({ day, weekday }: Cron, say: Phrases): string | undefined {
  if (day.is === "any" && weekday.is === "any") return "";
  if (day.is === "any") {
    if (weekday.is === "nth_weekday") return say.nthWeekday(weekday.nth, weekday.weekday);
    if (weekday.is === "range") return say.weekdayRange(weekday.from, weekday.to);
    if (weekday.is !== "values") return undefined;
    const [first = 0, last = 0] = [weekday.values[0], weekday.values.at(-1)];
    const isRun = weekday.values.length > 2 && last - first === weekday.values.length - 1;
    return isRun ? say.weekdayRange(first, last) : say.weekdays(weekday.values);
  }
  if (weekday.is !== "any") return undefined;
  if (day.is === "last_day") return say.lastDay(day.before, day.isWorkday);
  if (day.is === "near_workday") return say.nearWorkday(day.day);
  if (day.is === "range") return say.monthDayRange(day.from, day.to);
  return day.is === "values" && day.values.length <= MAX_TIMES ? say.monthDays(day.values) : undefined;
}

function months(month: Part, say: Phrases): string | undefined {
  if (month.is === "any") return "";
  const values = month.is === "step" ? undefined : valuesOf(month);
  return values === undefined ? undefined : say.months(values);
}

function years(year: Part, say: Phrases): string | undefined {
  if (year.is === "any") return "";
  const values = valuesOf(year);
  return values === undefined || values.length > MAX_TIMES ? undefined : say.years(values);
}

/** The expression in words, or `undefined`: then it is shown as it is. */
export function cronWords(text: string, language: Language): string | undefined {
  const cron = parseCron(text);
  if (cron === undefined) return undefined;
  const say = PHRASES[language];
  const parts = { days: days(cron, say), months: months(cron.month, say), years: years(cron.year, say) };
  if (parts.days === undefined || parts.months === undefined || parts.years === undefined) return undefined;
  const times = clockTimes(cron);
  const rhythm = times === undefined ? beat(cron, say) : undefined;
  if (times === undefined && rhythm === undefined) return undefined;
  return say.together({ times, beat: rhythm ?? "", days: parts.days, months: parts.months, years: parts.years });
}
