import { describe, expect, test } from "vitest";
import { refusedFieldZh } from "../src/i18n/zh/refusedFields";

describe("what the node says of fields, in Chinese", () => {
  test.each([
    ["1 to 128 printable characters are allowed", "须为 1 至 128 个可见字符"],
    ["1 to 1000 characters are allowed: say why, for whoever finds it paused", "须为 1 至 1000 个字符"],
    ["1 to 9 are allowed", "须为 1 至 9"],
    ["`Mars/Base` is no IANA time zone; Asia/Shanghai or UTC would be", "“Mars/Base”不是 IANA 时区，请填写例如 Asia/Shanghai 或 UTC"],
    ["hour (column 5): 25 is not between 0 and 23; allowed: 0-23 and * , - /", "“时”字段（第 5 列）：25 不在 0 至 23 之间；可用 0-23，以及 * , - /"],
    [
      "day of week (column 11): day of month is ? already, so this cannot be ? too; allowed: 1-7 or SUN-SAT and ? * , - / or one of L 6L FRIL 6#3 FRI#3",
      "“周”字段（第 11 列）：日已为 ?，周不能也为 ?；可用 1-7 或 SUN-SAT，以及 ? * , - /，或以下之一：L 6L FRIL 6#3 FRI#3",
    ],
  ])("%s", (said, chinese) => {
    expect(refusedFieldZh(said)).toBe(chinese);
  });

  test("what is not known stays as it is said", () => {
    expect(refusedFieldZh("1 to 9 are allowed on Sundays")).toBeUndefined();
    expect(refusedFieldZh("hour (column 5): it is late; allowed: 0-23")).toBeUndefined();
  });
});
