import { describe, expect, it } from "vitest";
import { excludedParts, hoursOf, isSame, namedInYear, reader, readHours, WEEKENDS_OFF, withDays, withSteps, withoutDays, withWeekday, type CalendarSpec } from "../src/lib/calendar";
import { dayOf, daysBetween, daysOfMonth, plusDays, rangesOf, weekdayOf, yearlyOf } from "../src/lib/days";
import { readDays } from "../src/lib/pasted-days";

const spec = (change: Partial<CalendarSpec>): CalendarSpec => ({ ...WEEKENDS_OFF, ...change });

describe("days", () => {
  it("knows which days there are", () => {
    expect(dayOf(2026, 2, 28)).toBe("2026-02-28");
    expect(dayOf(2026, 2, 29)).toBeUndefined();
    expect(dayOf(2028, 2, 29)).toBe("2028-02-29");
    expect(dayOf(2026, 13, 1)).toBeUndefined();
    expect(dayOf(1969, 12, 31)).toBeUndefined();
    expect(dayOf(2200, 1, 1)).toBeUndefined();
    expect(yearlyOf(2, 29)).toBe("02-29");
    expect(yearlyOf(4, 31)).toBeUndefined();
  });

  it("counts over the ends of months and years, and names weekdays", () => {
    expect(plusDays("2026-12-31", 1)).toBe("2027-01-01");
    expect(plusDays("2026-03-01", -1)).toBe("2026-02-28");
    expect(weekdayOf("2026-10-01")).toBe("thu");
    expect(weekdayOf("2026-10-04")).toBe("sun");
    expect(weekdayOf("2026-10-05")).toBe("mon");
    expect(daysOfMonth(2026, 2)).toHaveLength(28);
    expect(daysBetween("2026-10-03", "2026-10-01")).toEqual(["2026-10-01", "2026-10-02", "2026-10-03"]);
    expect(daysBetween("1970-01-01", "2199-12-31", 5)).toHaveLength(5);
  });

  it("takes neighbours together, days of every year by themselves and first", () => {
    expect(rangesOf(["2026-10-02", "12-25", "2026-10-01", "2026-12-31", "2027-01-01", "12-26"])).toEqual([
      { from: "12-25", until: "12-25", count: 1 },
      { from: "12-26", until: "12-26", count: 1 },
      { from: "2026-10-01", until: "2026-10-02", count: 2 },
      { from: "2026-12-31", until: "2027-01-01", count: 2 },
    ]);
  });
});

describe("a calendar", () => {
  it("is read as the node reads it: working days win over excluded ones, those over weekdays", () => {
    const says = reader(spec({ excluded_days: ["2026-10-01", "10-02", "2026-10-10"], workdays: ["2026-10-10", "05-09"] }));
    expect(says("2026-10-01")).toEqual({ works: false, reason: "excluded" });
    expect(says("2027-10-01")).toEqual({ works: true, reason: "plain" });
    expect(says("2027-10-02")).toEqual({ works: false, reason: "excluded_yearly" });
    expect(says("2026-10-10")).toEqual({ works: true, reason: "workday" });
    expect(says("2026-05-09")).toEqual({ works: true, reason: "workday_yearly" });
    expect(says("2026-10-03")).toEqual({ works: false, reason: "weekday" });
    expect(says("2026-10-08")).toEqual({ works: true, reason: "plain" });
  });

  it("writes only what is needed for a day", () => {
    // A Thursday off, a Saturday that is off anyway, and back.
    const off = withDays(WEEKENDS_OFF, ["2026-10-01", "2026-10-03"], false);
    expect(off).toEqual({ spec: spec({ excluded_days: ["2026-10-01"] }), stuck: [] });
    expect(withDays(off.spec, ["2026-10-01"], true).spec).toEqual(WEEKENDS_OFF);
    const works = withDays(WEEKENDS_OFF, ["2026-10-10"], true).spec;
    expect(works.workdays).toEqual(["2026-10-10"]);
    expect(withDays(works, ["2026-10-10"], false).spec).toEqual(WEEKENDS_OFF);
  });

  it("overrides a day of every year by a single one where that can be, and says where it cannot", () => {
    const yearlyOff = spec({ excluded_days: ["10-01"] });
    expect(withDays(yearlyOff, ["2026-10-01"], true).spec.workdays).toEqual(["2026-10-01"]);
    const yearlyWorks = spec({ workdays: ["10-10"] });
    expect(withDays(yearlyWorks, ["2026-10-10"], false)).toEqual({ spec: yearlyWorks, stuck: ["2026-10-10"] });
  });

  it("takes days of every year as they are, from one list to the other", () => {
    const { spec: changed } = withDays(spec({ workdays: ["12-25"] }), ["12-25"], false);
    expect(changed).toEqual(spec({ excluded_days: ["12-25"] }));
    expect(withoutDays(changed, ["12-25"])).toEqual(WEEKENDS_OFF);
  });

  it("goes step by step: the later decides", () => {
    const { spec: done, stuck } = withSteps(WEEKENDS_OFF, [
      { days: ["2026-10-01", "2026-10-10"], works: false },
      { days: ["2026-10-10", "2026-10-01"], works: true },
      { days: ["2026-10-02"], works: false },
    ]);
    expect(done).toEqual(spec({ excluded_days: ["2026-10-02"], workdays: ["2026-10-10"] }));
    expect(stuck).toEqual([]);
  });

  it("changes weekdays, counts, compares", () => {
    expect(withWeekday(WEEKENDS_OFF, "sat", false).excluded_weekdays).toEqual(["sun"]);
    expect(withWeekday(WEEKENDS_OFF, "sat", true).excluded_weekdays).toEqual(["sun", "sat"]);
    expect(namedInYear(spec({ excluded_days: ["2026-10-01", "10-02", "2027-01-01"], workdays: ["2026-10-10"] }), 2026)).toEqual({ excluded: 1, workdays: 1 });
    expect(isSame(WEEKENDS_OFF, spec({ excluded_weekdays: ["sun", "sat"] }))).toBe(true);
    expect(isSame(WEEKENDS_OFF, spec({ workdays: ["2026-10-10"] }))).toBe(false);
  });

  it("reads hours as people type them", () => {
    expect(readHours("9:00 - 12:00，22：00~6:00")).toEqual(["09:00-12:00", "22:00-06:00"]);
    expect(readHours(" 12:00-13:30 ")).toEqual(["12:00-13:30"]);
    expect(readHours("12:00-13:30 18:00至19:00")).toEqual(["12:00-13:30", "18:00-19:00"]);
    expect(readHours("lunch")).toEqual(["lunch"]);
    expect(readHours("")).toEqual([]);
  });

  it("knows which hours the node takes", () => {
    expect(hoursOf("12:00-13:30")).toEqual({ from: 720, until: 810 });
    expect(hoursOf("22:00-06:00")).toEqual({ from: 1_320, until: 360 });
    expect(hoursOf("22:00-24:00")).toEqual({ from: 1_320, until: 1_440 });
    for (const wrong of ["00:00-24:00", "24:00-06:00", "12:00-12:00", "9:00-10:00", "12:60-13:00", "12:00-24:01", ""]) expect(hoursOf(wrong), wrong).toBeUndefined();
    expect(excludedParts(["22:00-06:00", "12:00-13:00", "23:00-00:00"])).toEqual([
      { from: 0, until: 360 },
      { from: 720, until: 780 },
      { from: 1_320, until: 1_440 },
      { from: 1_380, until: 1_440 },
    ]);
  });
});

describe("pasted days", () => {
  it("reads an official notice: holidays and the days worked for them", () => {
    const notice = `一、元旦：1月1日（周四）至3日（周六）放假调休，共3天。1月4日（周日）上班。
二、春节：2月15日（农历腊月二十八、周日）至23日（农历正月初七、周一）放假调休，共9天。2月14日（周六）、2月28日（周六）上班。`;
    const { excluded, workdays, wrong } = readDays(notice, 2026, "excluded");
    expect(wrong).toEqual([]);
    expect(excluded).toHaveLength(12);
    expect(excluded.slice(0, 4)).toEqual(["2026-01-01", "2026-01-02", "2026-01-03", "2026-02-15"]);
    expect(excluded.at(-1)).toBe("2026-02-23");
    expect(workdays).toEqual(["2026-01-04", "2026-02-14", "2026-02-28"]);
  });

  it("reads lists and ranges in the ways in which people write them", () => {
    const text = "2026-10-01\n2026/5/1, 20260619\n2026年9月25日\n2026-12-30..2027-01-02\n2026-04-04 ~ 04-06\n12-25";
    expect(readDays(text, 2030, "excluded")).toEqual({
      excluded: ["12-25", "2026-04-04", "2026-04-05", "2026-04-06", "2026-05-01", "2026-06-19", "2026-09-25", "2026-10-01", "2026-12-30", "2026-12-31", "2027-01-01", "2027-01-02"],
      workdays: [],
      wrong: [],
    });
  });

  it("goes by the words of a line, and by the choice where there are none", () => {
    expect(readDays("2026-10-10 work day\n2026-10-01,holiday\n2026-10-11", 2026, "workdays")).toEqual({
      excluded: ["2026-10-01"],
      workdays: ["2026-10-10", "2026-10-11"],
      wrong: [],
    });
  });

  it("crosses the end of the year, within and over years", () => {
    expect(readDays("12月31日至1月2日放假", 2026, "excluded").excluded).toEqual(["2026-12-31", "2027-01-01", "2027-01-02"]);
    expect(readDays("12-30 - 01-01", 2026, "excluded").excluded).toEqual(["01-01", "12-30", "12-31"]);
  });

  it("names what it did not understand, and takes none of it", () => {
    expect(readDays("2026-02-30, next Monday\n2026-10-07..2026-10-01\n2026-01-01..2026-12-31\n13月1日", 2026, "excluded")).toEqual({
      excluded: [],
      workdays: [],
      wrong: ["2026-02-30", "next Monday", "2026-10-07..2026-10-01", "2026-01-01..2026-12-31", "13月1日"],
    });
  });
});
