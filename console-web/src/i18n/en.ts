import common from "./en/common";
import overview from "./en/overview";
import tasks from "./en/tasks";
import task from "./en/task";
import logs from "./en/logs";
import executors from "./en/executors";
import nodes from "./en/nodes";
import admin from "./en/admin";
import people from "./en/people";
import audit from "./en/audit";
import calendars from "./en/calendars";
import statistics from "./en/statistics";
import schedule from "./en/schedule";
import reasons from "./en/reasons";
import xxljob from "./en/xxljob";
import imports from "./en/imports";

/** Every text in English, by namespace. */
const en = { common, overview, tasks, task, logs, executors, nodes, admin, people, audit, calendars, statistics, schedule, reasons, xxljob, imports };
export default en;
