import type { Like } from "../shape";
import type en from "../en/reasons";

const zh: Like<typeof en> = {
  handler_failed: "处理器返回了错误。",
  handler_failed_for_good: "处理器返回了错误，并要求不再重试。",
  handler_panicked: "处理器崩溃（panic）：其代码存在缺陷。",
  timed_out: "运行时间超过了任务的超时设置。",
  no_executor: "应用没有在线的执行器具备该处理器和标签。请确认服务正在运行并声明了该处理器。",
  not_accepted: "所有合适的执行器都拒绝了此次运行，或无法连接。",
  undelivered: "派发未送达执行器，此次运行确定没有开始。",
  given_back: "执行器在未开始时退回了此次运行，关闭时会如此。",
  executor_gone: "执行器在到期前离线，此次运行从未开始。",
  outcome_unknown: "执行器在到期后离线，是否已运行未知。请检查处理器应完成的工作。",
  abandoned: "执行器与所有节点失去联系或被关闭，因而停止了此次运行。",
  task_stopped: "任务已被停止。",
  task_edited: "任务已被修改，由新的定义继续。",
  task_deleted: "任务已被删除。",
  cancelled_manually: "有人取消了此次运行，审计中有记录。",
  expired: "超过了任务的过期时间，任务丢弃迟到的运行。",
  misfire_skipped: "在无法运行期间错过；任务跳过错过的触发，或由另一次运行代替。",
  task_paused: "任务已暂停（由人操作，或连续失败后自动暂停）。",
  maintenance: "到期时间处于租户的维护窗口内。",
  blocked: "到期时上一次运行仍在进行，任务丢弃后来的运行。",
  covered: "被该任务后来的一次运行取代。",
  wait_timed_out: "未能在任务的等待超时内开始。",
  all_busy: "所有合适的执行器都在忙于该任务。",
  shard_failed: "至少有一个分片未成功，展开可查看是哪一个。",
  over_quota: "租户每分钟触发次数的配额使其延后，或未能及时腾出名额。",
  task_limit: "该任务同时运行的数量已达上限，正在排队。",
  app_limit: "该应用同时运行的数量已达上限，正在排队。",
  tenant_limit: "该租户同时运行的数量已达上限，正在排队。",
};
export default zh;
