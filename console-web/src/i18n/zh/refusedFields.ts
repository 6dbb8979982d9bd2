/** What the node says is wrong with a field, in Chinese. In English the node says it itself. */

const CRON_FIELDS: Readonly<Record<string, string>> = { second: "秒", minute: "分", hour: "时", "day of month": "日", month: "月", "day of week": "周", year: "年" };

/** `$1` and so on are what the brackets have found. */
export const CRON_REASONS: readonly (readonly [RegExp, string])[] = [
  [/^an expression has 6 or 7 fields, this one ends after (\d+)$/, "表达式须有 6 或 7 个字段，此处只有 $1 个"],
  [/^an expression has 6 or 7 fields, this is one more$/, "表达式须有 6 或 7 个字段，此处多了一个"],
  [/^unexpected (.+)$/, "不应出现 $1"],
  [/^something is missing here$/, "此处缺少内容"],
  [/^(\d+) is not between (\d+) and (\d+)$/, "$1 不在 $2 至 $3 之间"],
  [/^the step (\d+) is not between 1 and (\d+)$/, "步长 $1 不在 1 至 $2 之间"],
  [/^the range of years ends before it starts$/, "年份范围的结束早于开始"],
  [/^unknown name$/, "名称无法识别"],
  [/^a range goes from number to number or from name to name$/, "范围的两端须同为数字或同为名称"],
  [/^a step cannot follow a name, write numbers$/, "名称之后不能写步长，请使用数字"],
  [/^L, W, # and \? stand alone, not in a list, a range or with a step$/, "L、W、# 和 ? 须单独使用，不能用于列表、范围或步长"],
  [/^day of month and day of week cannot both be given, one of them must be \?$/, "日和周不能同时指定，其中之一须为 ?"],
  [/^day of month is \? already, so this cannot be \? too$/, "日已为 ?，周不能也为 ?"],
];

export const MESSAGES: readonly (readonly [RegExp, string])[] = [
  [/^is required$/, "必填"],
  [/^(\d+) to (\d+) printable characters are allowed$/, "须为 $1 至 $2 个可见字符"],
  [/^(\d+) to (\d+) characters are allowed(?:: say .+)?$/, "须为 $1 至 $2 个字符"],
  [/^at most (\d+) (?:printable )?characters are allowed$/, "最多 $1 个字符"],
  [/^at most (\d+) bytes are allowed$/, "最多 $1 字节"],
  [/^the character NUL is not allowed$/, "不能包含 NUL 字符"],
  [/^`\/` is not allowed: .+$/, "不能包含“/”：它在父任务中用于分隔应用和任务"],
  [/^at most (\d+) tags of 1 to (\d+) printable characters are allowed$/, "最多 $1 个标签，每个须为 1 至 $2 个可见字符"],
  [/^at most (\d+) parents are allowed$/, "最多 $1 个父任务"],
  [/^a parent is allowed once$/, "同一父任务只能出现一次"],
  [/^`task`, or `app\/task` for another app, is allowed$/, "请填写任务名称；其他应用的任务写作 应用/任务"],
  [/^there is no task `(.+)`$/, "没有名为 $1 的任务"],
  [/^the name of a calendar of the tenant, or nothing, is allowed$/, "请填写租户中的日历名称，或留空"],
  [/^`(.*)` is no IANA time zone; .+$/, "“$1”不是 IANA 时区，请填写例如 Asia/Shanghai 或 UTC"],
  [/^1000 \(a second\) to \d+ \(366 days\) are allowed$/, "须为 1 秒至 366 天"],
  [/^an instant is required for `schedule: once`$/, "请填写触发时间"],
  [/^lies in the past \(.+$/, "该时间已过，可改为手动运行"],
  [/^0 \(none\) to the end of 2199 is allowed$/, "不能晚于 2199 年"],
  [/^an instant after `valid_from` is allowed$/, "须晚于生效时间"],
  [/^only `skip` is allowed without a cron schedule$/, "只有 Cron 调度才能移到其他工作日"],
  [/^only 0 is allowed without a cron or fixed-rate schedule$/, "只有 Cron 或固定频率的任务可以设置，其他须为 0"],
  [/^0 \(no bound\) to (\d+) are allowed$/, "须为 0（不限）至 $1"],
  [/^(\d+) to (\d+) ms are allowed$/, "须为 $1 至 $2 毫秒"],
  [/^(\d+) to (\d+) are allowed$/, "须为 $1 至 $2"],
  [/^this is not the password$/, "密码不正确"],
  [/^another one than the current is allowed$/, "不能与当前密码相同"],
  [/^it must not contain the user's name$/, "不能包含用户名"],
  [/^it is too easily guessed; .+$/, "过于容易猜到，建议使用几个随机的词"],
  [/^this is the name of a built-in role$/, "这是内置角色的名称"],
  [/^an instant after `starts_at` and now, at most 30 days later, is allowed$/, "须晚于开始时间和现在，且最长 30 天"],
  [/^an instant to come, at most ten years away, is allowed$/, "请选择将来的时间，最长十年"],
  [/^no working day is left between 1970 and 2199; leave at least one$/, "1970 至 2199 年间没有剩下工作日，请至少保留一天"],
  [/^no minute of the day is left; leave at least one$/, "一天中没有剩下可触发的时间，请至少保留一分钟"],
];

function byPattern(message: string, known: readonly (readonly [RegExp, string])[]): string | undefined {
  const found = known.find(([pattern]) => pattern.test(message));
  return found === undefined ? undefined : message.replace(found[0], found[1]);
}

function ofCron(message: string): string | undefined {
  const found = /^([a-z ]+) \(column (\d+)\): (.+); allowed: (.+)$/.exec(message);
  if (found === null) return undefined;
  const [, field = "", column = "", reason = "", allowed = ""] = found;
  const [name, why] = [CRON_FIELDS[field], byPattern(reason, CRON_REASONS)];
  if (name === undefined || why === undefined) return undefined;
  return `“${name}”字段（第 ${column} 列）：${why}；可用 ${allowed.replace(" and ", "，以及 ").replace(" or one of ", "，或以下之一：").replace(" or ", " 或 ")}`;
}

/** The message in Chinese; of one that a newer node says, nothing. */
export function refusedFieldZh(message: string): string | undefined {
  return byPattern(message, MESSAGES) ?? ofCron(message);
}
