/**
 * Days out of pasted text: a list, ranges, or the words of an official notice
 * ("10月1日（周四）至7日（周三）放假调休，共7天。10月10日（周六）上班。").
 */
import { dayOf, daysBetween, isOneDay, yearlyOf } from "./days";

/** What was found. */
export interface PastedDays {
  /** Days that are off. */
  excluded: string[];
  /** Days that are worked, although they would be off. */
  workdays: string[];
  /** Parts in which no day was understood. */
  wrong: string[];
}

/** Longest range that is taken for one, days: beyond it the year was mistyped. */
const RANGE_DAYS_MAX = 92;

const CONNECTOR = String.raw`\s*(?:至|到|~|～|–|—|-{1,2}|\.\.+|to|until)\s*`;
const ONE = String.raw`(?:(\d{4})\s*[-/.年]\s*)?(\d{1,2})\s*([-/.月])\s*(\d{1,2})\s*日?`;
// The end of a range may leave out what it shares with the beginning: "10月1日至7日".
const END = String.raw`(?:(?:(\d{4})\s*[-/.年]\s*)?(\d{1,2})\s*[-/.月]\s*)?(\d{1,2})\s*日?`;
const DAYS = new RegExp(String.raw`(?<!\d)${ONE}(?!\d)(?:${CONNECTOR}${END}(?!\d))?`, "g");
const COMPACT = /(?<!\d)(\d{4})(\d{2})(\d{2})(?!\d)/g;

const WORKS = /上班|补班|\bwork/i;
const IS_OFF = /放假|休息|\boff\b|holiday/i;
const CHINESE = /\p{Script=Han}/u;

/**
 * Reads the text. Days without a year are of `year` where they are written in Chinese (10月1日), and of every year
 * where they are written as the node writes them (10-01). Sentences that say neither "off" nor "works" are `otherwise`.
 */
export function readDays(text: string, year: number, otherwise: "excluded" | "workdays"): PastedDays {
  const found = { excluded: new Set<string>(), workdays: new Set<string>() };
  const wrong: string[] = [];
  const sentences = text
    .replaceAll(/（[^（）]*）|\([^()]*\)/g, "")
    .replaceAll(COMPACT, "$1-$2-$3")
    .split(/[\n\r。；;]/);
  for (const sentence of sentences) {
    const into = WORKS.test(sentence) ? found.workdays : IS_OFF.test(sentence) ? found.excluded : found[otherwise];
    for (const part of sentence.split(/[,，、\t]/).map((each) => each.trim())) {
      const days = readPart(part, year);
      if (days === undefined) wrong.push(part);
      else for (const day of days) into.add(day);
    }
  }
  // What is worked is not off, whatever else the text says.
  for (const day of found.workdays) found.excluded.delete(day);
  return { excluded: [...found.excluded].sort(), workdays: [...found.workdays].sort(), wrong };
}

/** The days of one part; none where it is empty or mere words, `undefined` where it is not understood. */
function readPart(part: string, year: number): string[] | undefined {
  const matches = [...part.matchAll(DAYS)];
  if (matches.length === 0) {
    // "共7天" belongs to the notice; "next Monday" does not belong to a list.
    return part === "" || CHINESE.test(part) || IS_OFF.test(part) || WORKS.test(part) ? [] : undefined;
  }
  const days: string[] = [];
  for (const match of matches) {
    const read = readMatch(match, year);
    if (read === undefined) return undefined;
    days.push(...read);
  }
  return days;
}

function readMatch(match: RegExpExecArray, year: number): string[] | undefined {
  const [, fromYear, fromMonth, mark, fromDay, untilYear, untilMonth, untilDay] = match;
  const ofYear = fromYear !== undefined ? Number(fromYear) : mark === "月" ? year : undefined;
  const month = Number(fromMonth);
  const from = one(ofYear, month, Number(fromDay));
  if (from === undefined) return undefined;
  if (untilDay === undefined) return [from];
  const lastMonth = untilMonth === undefined ? month : Number(untilMonth);
  // A range of every year is written within one, which has every day.
  const within = ofYear ?? 2000;
  const turns = untilYear === undefined && lastMonth < month ? 1 : 0;
  const begin = dayOf(within, month, Number(fromDay));
  const end = dayOf(untilYear === undefined ? within + turns : Number(untilYear), lastMonth, Number(untilDay));
  if (begin === undefined || end === undefined || end < begin) return undefined;
  const days = daysBetween(begin, end, RANGE_DAYS_MAX + 1);
  if (days.length > RANGE_DAYS_MAX) return undefined;
  return isOneDay(from) ? days : days.map((day) => day.slice(5));
}

function one(year: number | undefined, month: number, day: number): string | undefined {
  return year === undefined ? yearlyOf(month, day) : dayOf(year, month, day);
}
