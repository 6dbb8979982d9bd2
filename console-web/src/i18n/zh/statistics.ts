import type { Like } from "../shape";
import type en from "../en/statistics";

const zh: Like<typeof en> = {
  of_tenant: "租户 {{tenant}}",
  of_all: "您可以查看全部内容的所有租户",
  of_task: "单个任务",
  task: "任务",
  all_tasks: "全部任务",
  find_task: "选择任务，或输入其名称",
  step: "统计粒度",
  steps: { "1m": "1 分钟", "5m": "5 分钟", "1h": "1 小时", "1d": "1 天" },
  download: "下载 CSV",
  totals: "合计",
  times: "时间",
  outcome: "结果",
  count: "数量",
  share: "占比",
  fires: "触发",
  failures: "失败的尝试",
  failures_help: "包括随后重试的尝试。",
  runs: "运行数",
  mean: "平均",
  max: "最长",
  lateness: "延迟",
  duration: "耗时",
  lateness_long: "延迟：从最后一次尝试的应执行时间到启动",
  duration_long: "耗时：从最后一次尝试启动到结束",
  up_to: "≤ {{span}}",
  above: "> {{span}}",
  bucket: "时间",
  no_times: "此时间段内没有运行启动。",
  window: "{{from}} 至 {{until}}",
  none: "此时间段没有统计数据",
  none_help:
    "可能没有触发，或尚未统计：每分钟的数据在该分钟结束约半分钟后生成。单个任务的分钟级数据默认只保留 7 天；更长的时间请使用 1 小时或 1 天的粒度。",
};
export default zh;
