import { describe, expect, it } from "vitest";
import { COUNTS, fromCron, toCron, type Built, type Unit } from "../src/lib/cronBuilder";

const time = { hour: 2, minute: 30, second: 0 };

const PAIRS: [Built, string][] = [
  [{ kind: "every", count: 1, unit: "second" }, "* * * * * ?"],
  [{ kind: "every", count: 10, unit: "second" }, "0/10 * * * * ?"],
  [{ kind: "every", count: 1, unit: "minute" }, "0 * * * * ?"],
  [{ kind: "every", count: 15, unit: "minute" }, "0 0/15 * * * ?"],
  [{ kind: "every", count: 1, unit: "hour" }, "0 0 * * * ?"],
  [{ kind: "every", count: 6, unit: "hour" }, "0 0 0/6 * * ?"],
  [{ kind: "daily", time }, "0 30 2 * * ?"],
  [{ kind: "daily", time: { hour: 0, minute: 0, second: 0 } }, "0 0 0 * * ?"],
  [{ kind: "weekly", weekdays: [2, 4, 6], time }, "0 30 2 ? * MON,WED,FRI"],
  [{ kind: "weekly", weekdays: [1], time }, "0 30 2 ? * SUN"],
  [{ kind: "monthly", on: { is: "day", day: 25 }, time }, "0 30 2 25 * ?"],
  [{ kind: "monthly", on: { is: "last" }, time }, "0 30 2 L * ?"],
  [{ kind: "monthly", on: { is: "nth", nth: 3, weekday: 6 }, time }, "0 30 2 ? * FRI#3"],
  [{ kind: "monthly", on: { is: "nth", nth: 0, weekday: 6 }, time }, "0 30 2 ? * FRIL"],
];

describe("cron builder", () => {
  it.each(PAIRS)("%o is %s, both ways", (built, cron) => {
    expect(toCron(built)).toBe(cron);
    expect(fromCron(cron)).toEqual(built);
  });

  it("comes back from every beat that it offers", () => {
    for (const unit of ["second", "minute", "hour"] satisfies Unit[]) {
      for (const count of COUNTS[unit]) {
        const built: Built = { kind: "every", count, unit };
        expect(fromCron(toCron(built))).toEqual(built);
      }
    }
  });

  it("understands other ways to write the same", () => {
    expect(fromCron("0 */15 * * * *")).toEqual({ kind: "every", count: 15, unit: "minute" });
    expect(fromCron(" 0  30 2 ? * 2-6 ")).toEqual({ kind: "weekly", weekdays: [2, 3, 4, 5, 6], time });
    expect(fromCron("0 30 2 ? * 6#3 *")).toEqual({ kind: "monthly", on: { is: "nth", nth: 3, weekday: 6 }, time });
    expect(fromCron("0 30 2 ? * mon,mon")).toEqual({ kind: "weekly", weekdays: [2], time });
  });

  it.each([
    "0 0/7 * * * ?", // restarts with each hour
    "5/15 * * * * ?",
    "0 0 9-17 * * ?",
    "0 0 0 1 1 ?",
    "0 0 0 1 * ? 2027",
    "0 0 0 LW * ?",
    "0 0 0 L-2 * ?",
    "0 0 0 1,15 * ?",
    "0 30 2 * *",
    "",
    "0 30 24 * * ?",
    "0 30 2 ? * FRI-MON",
    "0 30 2 ? * MON-",
  ])("leaves %s to the hand", (cron) => {
    expect(fromCron(cron)).toBeUndefined();
  });
});
