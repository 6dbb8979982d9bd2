import common from "./zh/common";
import overview from "./zh/overview";
import tasks from "./zh/tasks";
import task from "./zh/task";
import logs from "./zh/logs";
import executors from "./zh/executors";
import nodes from "./zh/nodes";
import admin from "./zh/admin";
import people from "./zh/people";
import audit from "./zh/audit";
import calendars from "./zh/calendars";
import statistics from "./zh/statistics";
import schedule from "./zh/schedule";
import reasons from "./zh/reasons";
import xxljob from "./zh/xxljob";
import imports from "./zh/imports";
import type { Like } from "./shape";
import type english from "./en";

/** Every text in Chinese, by namespace. */
const zh: Like<typeof english> = { common, overview, tasks, task, logs, executors, nodes, admin, people, audit, calendars, statistics, schedule, reasons, xxljob, imports };
export default zh;
