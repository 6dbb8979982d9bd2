import type { Like } from "../shape";
import type en from "../en/imports";

const zh: Like<typeof en> = {
  subtitle: "来自其他调度系统的任务，以及其中哪些已在这里运行",
  choose_tenant: "导入按租户查看，请先选择租户。",
  whole_only: "只有可以查看该租户全部任务的用户才能查看导入情况",
  whole_only_help: "你目前只能查看其中部分应用的任务。请联系用户管理员，授予整个租户范围的角色。",
  cut: "导入的任务超过本页的读取上限：仅显示 {{count}} 个。",
  groups: {
    title: "分组",
    help: "对方的一个分组对应这里的一个应用。一个任务要么在对方运行，要么在这里运行，不会两边同时运行。",
    source: "来源",
    group: "分组",
    tasks: "任务",
    choose: "只看此组",
    all: "查看全部",
  },
  progress: {
    here: "已切换",
    partly: "部分已交还",
    back: "已交还",
    waiting: "尚未切换",
  },
  count: {
    here: "{{n}} 个在此运行",
    paused: "{{n}} 个已暂停",
    back: "{{n}} 个已交还",
    waiting: "{{n}} 个未在此启动",
  },
  side: {
    here: "在此运行",
    paused: "在此暂停",
    back: "已交还",
    waiting: "未在此启动",
  },
  side_help: {
    here: "已在此启动，对方的任务不应再运行。",
    paused: "已在此启动，现已暂停，对方的任务不应再运行。",
    back: "已在此停止，并记下了首次触发时间：任务已交还对方，或切换中途中断。重复执行相应命令即可继续。",
    waiting: "任务仍在对方运行，或在导入时就已停止。",
  },
  tasks: {
    title: "已导入的任务（{{n}}）",
    title_of: "{{app}} 的已导入任务（{{n}}）",
    label: "已导入的任务",
    there: "原编号",
  },
  commands: {
    title: "下一步",
    title_of: "下一步：{{app}}",
    title_empty: "{{tenant}} 尚未导入任何内容",
    empty: "导入会从对方调度系统的数据库读取分组、任务和用户；不会在这里启动任何任务，也不会改动对方，可以反复执行。",
    kind: "导入来源",
    help: "命令可在任何能访问该数据库和调度节点的机器上执行，请先执行 carillon login。请填入数据库的主机、用户，以及对方调度进程所在的时区。数据库密码取自环境变量 CARILLON_IMPORT_PASSWORD。",
    look: "预览将导入的内容，以及哪些无法沿用：",
    take: {
      "xxl-job": "导入：分组成为应用，任务导入后处于停止状态，用户成为账号。对方有改动时可再次执行：",
      horace: "导入：应用和任务，任务处于停止状态。对方有改动时可再次执行：",
    },
    door: "为各应用的 xxl-job 执行器开放接入，并将其中一半指向调度节点。",
    to_apps: "前往应用",
    move: "切换：停止对方的任务并在这里启动，不漏触发，也不重复触发。若中途中断，重复执行即可：",
    back: "如有需要，以同样方式交还对方：",
    by_hand: "horace cron-job 没有切换命令：请逐个在对方停止任务，再在这里启动。",
    copy: "复制命令 {{n}}",
    more: "每一步以及各字段的对应关系，见 docs/migrating-from-xxl-job.md 和 docs/migrating-from-horace.md。",
  },
};
export default zh;
