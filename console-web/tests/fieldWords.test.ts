import i18next from "i18next";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Problem, type FieldError } from "../src/api/client";
import * as words from "../src/i18n/zh/refusals";
import { detailOf, fieldWords, sayInChinese } from "../src/i18n/fieldWords";

const zone: FieldError = { field: "time_zone", code: "wrong_time_zone_near", params: { given: "europe/berlin", nearest: "Europe/Berlin" }, message: "in English" };
const hour: FieldError = {
  field: "cron", code: "cron_out_of_range", params: { part: "hour", column: 5, allowed: "0-23 and * , - /", given: 25, least: 0, most: 23 }, message: "in English",
};
const newer = { field: "name", code: "on_sundays", params: {}, message: "1 to 9 are allowed on Sundays" } as unknown as FieldError;

describe("what the node refuses", () => {
  beforeAll(async () => {
    await i18next.init({ lng: "zh", resources: {} });
    sayInChinese(words);
  });
  beforeEach(() => i18next.changeLanguage("zh"));

  test("has words in Chinese by its code", () => {
    expect(fieldWords(zone)).toBe("“europe/berlin”不是 IANA 时区，是否指 Europe/Berlin？");
    expect(fieldWords(hour)).toBe("“时”字段（第 5 列）：25 不在 0 至 23 之间；可用 0-23，以及 * , - /");
    expect(fieldWords({ ...zone, entry: "retail/orders/a" })).toBe("retail/orders/a：“europe/berlin”不是 IANA 时区，是否指 Europe/Berlin？");
    expect(detailOf(new Problem(409, "name_taken", "in English", [], { kind: "task", name: "a" }))).toBe("已有名为 a 的任务");
    expect(detailOf(new Problem(400, "invalid_fields", "in English", [zone]))).toContain("time_zone: “europe/berlin”");
  });

  test("stays as it is said where a newer node says it, and in English", async () => {
    expect(fieldWords(newer)).toBe(newer.message);
    expect(detailOf(new Problem(502, "", "Bad Gateway"))).toBe("Bad Gateway");
    await i18next.changeLanguage("en");
    expect(fieldWords(zone)).toBe("in English");
  });
});
