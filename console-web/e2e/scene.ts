/** Every page of the console, with what it needs to be about something. */
import type { World } from "./harness/world";
import type { AppKey } from "./harness/world";

/** A world in which something is going on everywhere. */
export interface Scene {
  world: World;
  key: AppKey;
  /** An app with an executor of xxl-job (id). */
  orders: string;
  /** Tasks by name. */
  tasks: Map<string, string>;
  /** A run that has failed, one that has ended well. */
  failed: string;
  succeeded: string;
}

/** Tenants, apps, executors, tasks that run and fail, people, a calendar, a window, a backfill. */
export async function makeScene(world: World): Promise<Scene> {
  const key = await world.app("demo", "bells");
  const orders = await world.app("retail", "orders");
  await world.executor(key);
  await world.plainExecutor(orders, await world.openDoor(orders, "old executors"), "Go-http-client/1.1");
  const tasks = await world.tasks(key, [
    { name: "every second", handler: "tick", cron: "* * * * * ?", started: true },
    { name: "in shards", handler: "sharded", cron: "0/5 * * * * ?", routing: "sharding", started: true },
    { name: "always fails", handler: "fail", cron: "0/4 * * * * ?", max_retries: 1, retry_interval_ms: 500, started: true },
    { name: "nightly", handler: "echo", cron: "0 30 2 * * ?", time_zone: "Asia/Shanghai", params: "hello", description: "settles the day", started: true },
    { name: "after nightly", handler: "echo", schedule: "none", parents: [{ task: "nightly" }], started: true },
    { name: "no such handler", handler: "missing", cron: "0/7 * * * * ?", max_retries: 0, started: true },
    { name: "stopped", handler: "echo", cron: "0 0 9 L-2 * ?" },
  ]);
  await world.api.PUT("/calendars/{tenant}/{name}", {
    params: { path: { tenant: "demo", name: "holidays" } },
    body: { description: "days without business", excluded_weekdays: ["sat", "sun"], excluded_days: ["2026-12-25"], workdays: [], excluded_hours: [] },
  });
  await world.api.POST("/tenants/{tenant}/maintenance", {
    params: { path: { tenant: "demo" } },
    body: { starts_at: Date.now() + 86_400_000, ends_at: Date.now() + 90_000_000, note: "database upgrade" },
  });
  const origins = ["nightly", "stopped"].map((name, index) => ({ task: tasks.get(name) ?? "", origin: `xxl-job#${index + 7}`, number: index + 7 }));
  await world.api.PUT("/tenants/{tenant}/origins", { params: { path: { tenant: "demo" } }, body: { items: origins } });
  const id = (name: string) => tasks.get(name) ?? "";
  const failed = (await world.log(id("always fails"), "failed")).id;
  const succeeded = (await world.log(id("every second"), "succeeded")).id;
  return { world, key, orders: orders.appId, tasks, failed, succeeded };
}

/** Every page's address. A page that is missing here is missed by the tests that walk them. */
export function places({ key, orders, tasks, failed, succeeded }: Scene, userId: string): Record<string, string> {
  const task = tasks.get("every second") ?? "";
  return {
    overview: "/",
    tasks: "/tasks?tenant=demo",
    task: `/tasks/${task}`,
    "task-with-child": `/tasks/${tasks.get("nightly") ?? ""}`,
    "task-new": "/tasks/new?tenant=demo",
    "task-edit": `/tasks/${tasks.get("nightly") ?? ""}/edit`,
    logs: "/logs?tenant=demo",
    "log-failed": `/logs/${failed}`,
    "log-succeeded": `/logs/${succeeded}`,
    calendars: "/calendars?tenant=demo",
    maintenance: "/maintenance?tenant=demo",
    statistics: "/statistics?tenant=demo",
    executors: "/executors",
    apps: "/apps",
    app: `/apps/${key.appId}`,
    "app-xxl-job": `/apps/${orders}`,
    imports: "/imports?tenant=demo",
    "imports-none": "/imports?tenant=retail",
    nodes: "/nodes",
    settings: "/settings",
    tenants: "/tenants",
    quotas: "/quotas?tenant=demo",
    users: "/users",
    user: `/users/${userId}`,
    roles: "/roles",
    tokens: "/tokens",
    audit: "/audit",
    account: "/account",
  };
}
