import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { CRON_REASONS, MESSAGES, refusedFieldZh } from "../src/i18n/zh/refusedFields";
import { KNOWN } from "../src/lib/refusals";

/** The node's source: a text over two lines is one. */
function source(): string {
  const folder = join(import.meta.dirname, "../../scheduler/src");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".rs"));
  return files.map((name) => readFileSync(join(folder, name), "utf8")).join("\n").replaceAll(/\\\n\s*/g, "");
}

/** The longest part of a pattern that stands in what it finds, word for word. */
function literal({ source: pattern }: RegExp): string {
  const parts = pattern.replaceAll(/\([^()]*\)\??|\\d\+|\.\+|[\^$]/g, "\u0000").replaceAll(/\\(.)/g, "$1").split("\u0000");
  return parts.reduce((longest, part) => (part.length > longest.length ? part : longest), "");
}

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

  // A sentence that was changed there would be shown in English without anybody's notice.
  test("what is translated is what the node says", () => {
    const said = source();
    const unsaid = [...MESSAGES, ...CRON_REASONS, ...KNOWN].map(([pattern]) => literal(pattern)).filter((part) => !said.includes(part));
    expect(unsaid).toEqual([]);
  });
});
