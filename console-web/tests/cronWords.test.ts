import { describe, expect, it } from "vitest";
import { cronWords } from "../src/lib/cronWords";

const CASES: [cron: string, en: string, zh: string][] = [
  ["* * * * * ?", "every second", "每秒"],
  ["0/10 * * * * ?", "every 10 seconds", "每 10 秒"],
  ["5/15 * * * * ?", "every 15 seconds at second 5", "每 15 秒（第 5 秒）"],
  ["0 * * * * ?", "every minute", "每分钟"],
  ["0 */5 * * * *", "every 5 minutes", "每 5 分钟"],
  ["0 */5 9-17 ? * MON-FRI", "every 5 minutes from 09:00 to 17:59, Monday to Friday", "周一至周五，每 5 分钟（09:00 至 17:59）"],
  ["0 15 * * * ?", "every hour at minute 15", "每小时（第 15 分）"],
  ["0 0 0/6 * * ?", "every 6 hours", "每 6 小时"],
  ["0 0 9-17 * * ?", "every hour from 09:00 to 17:00", "每小时（09:00 至 17:00）"],
  ["0 30 2 * * ?", "every day at 02:30", "每天 02:30"],
  ["15 30 2 * * ?", "every day at 02:30:15", "每天 02:30:15"],
  ["0 0 9,17 * * ?", "every day at 09:00 and 17:00", "每天 09:00、17:00"],
  ["0 0 9 ? * MON,WED,FRI", "on Monday, Wednesday and Friday at 09:00", "每周一、周三、周五 09:00"],
  ["0 0 9 ? * MON-FRI", "Monday to Friday at 09:00", "周一至周五 09:00"],
  ["0 0 9 ? * MON,TUE,WED,THU,FRI", "Monday to Friday at 09:00", "周一至周五 09:00"],
  ["0 0 6 25 * ?", "on day 25 of the month at 06:00", "每月 25 日 06:00"],
  ["0 0 18 L * ?", "on the last day of the month at 18:00", "每月最后一天 18:00"],
  ["0 0 18 L-2 * ?", "2 days before the last of the month at 18:00", "每月倒数第 3 天 18:00"],
  ["0 0 18 LW * ?", "on the weekday nearest to the last day of the month at 18:00", "最接近每月最后一天的周一至周五 18:00"],
  ["0 15 10 ? * 6L", "on the last Friday of the month at 10:15", "每月最后一个周五 10:15"],
  ["0 15 10 ? * FRI#3", "on the third Friday of the month at 10:15", "每月第 3 个周五 10:15"],
  ["0 0 0 1 JAN,JUL ?", "on day 1 of the month at 00:00, in January and July", "每月 1 日 00:00，限 1、7 月"],
  ["0 0 0 1 1 ? 2027", "on day 1 of the month at 00:00, in January, in 2027", "每月 1 日 00:00，限 1 月，限 2027 年"],
];

describe("cron in words", () => {
  it.each(CASES)("%s", (cron, en, zh) => {
    expect(cronWords(cron, "en")).toBe(en);
    expect(cronWords(cron, "zh")).toBe(zh);
  });

  it.each([
    "0 30 2 * *", // five fields: Unix, not Quartz
    "nonsense",
    "0 0/7 1,5 * * ?",
    "0 0 0 1/3 * ?",
    "0 0 0 ? * FRI-MON",
    "0 0-59/10 * * * ?",
    "1,2,3 1,2,3 1 * * ?",
    "0 0 0 1W * MON",
    "0 0 0 1 * ? 2020-2090",
  ])("%s stays as it is", (cron) => {
    expect(cronWords(cron, "en")).toBeUndefined();
    expect(cronWords(cron, "zh")).toBeUndefined();
  });
});
