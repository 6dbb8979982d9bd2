/** For each permission an operation of the API that needs it, about the things of a scene. */
import type { Permission } from "../src/api/permissions";
import type { About } from "./buttons";

export interface Operation {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  body?: unknown;
}

export interface Things extends About {
  window: string;
  grant: string;
  token: string;
  key: string;
  role: string;
}

export function operations(things: Things): Record<Permission, Operation> {
  const { task, stopped, log, waiting, app, executor, user, window, grant, token, key, role } = things;
  const get = (path: string): Operation => ({ method: "GET", path });
  const post = (path: string, body: unknown = {}): Operation => ({ method: "POST", path, body });
  const put = (path: string, body: unknown): Operation => ({ method: "PUT", path, body });
  const patch = (path: string, body: unknown): Operation => ({ method: "PATCH", path, body });
  const remove = (path: string): Operation => ({ method: "DELETE", path });
  const run = { at: null, delay_ms: null, idempotency_key: null, priority: null };
  return {
    "apps.create": post("/apps", { tenant: "demo", name: "made-by-nobody" }),
    "apps.delete": remove(`/apps/${app}`),
    "apps.edit": patch(`/apps/${app}`, { description: "changed by nobody" }),
    "apps.read": get(`/apps/${app}`),
    "audit.read": get("/audit?tenant=demo"),
    "backfills.cancel": remove(`/tasks/${task}/backfills/${log}`),
    "backfills.create": post(`/tasks/${task}/backfills`, { from: Date.now() - 172_800_000, until: Date.now() - 1_000, max_concurrent: 1 }),
    "backfills.read": get(`/tasks/${task}/backfills`),
    "calendars.delete": remove("/calendars/demo/holidays"),
    "calendars.edit": put("/calendars/demo/holidays", { description: "changed by nobody", excluded_weekdays: [], excluded_days: [], workdays: [], excluded_hours: [] }),
    "calendars.read": get("/calendars/demo/holidays"),
    "clusters.read": get("/clusters"),
    "cluster.resume": post("/cluster/resume", { past: "run" }),
    "discovery.edit": put(`/apps/${app}/discovery`, { addresses: [], nacos: null }),
    "executors.edit": patch(`/executors/${executor}`, { disabled: true, note: "by nobody" }),
    "executors.read": get(`/executors/${executor}`),
    "grants.create": post(`/users/${user}/grants`, { role, tenant: "demo", apps: [] }),
    "grants.delete": remove(`/users/${user}/grants/${grant}`),
    "keys.create": post(`/apps/${app}/keys`, { note: "by nobody" }),
    "keys.read": get(`/apps/${app}/keys`),
    "keys.revoke": remove(`/keys/${key}`),
    "keys.rotate": post(`/apps/${app}/keys/rotate`, { overlap_ms: 0 }),
    "maintenance.create": post("/tenants/demo/maintenance", { ends_at: Date.now() + 60_000, note: "by nobody" }),
    "maintenance.delete": remove(`/tenants/demo/maintenance/${window}`),
    "maintenance.read": get("/tenants/demo/maintenance"),
    "nodes.read": get("/nodes"),
    "quotas.edit": patch("/tenants/demo/quotas", { max_tasks: 1, max_fires_per_minute: 1, max_concurrent: 1, retain_days: 1 }),
    "quotas.read": get("/tenants/demo/quotas"),
    "roles.create": post("/roles", { name: "by nobody", description: "", permissions: ["tasks.read"], tenant: "demo" }),
    "roles.delete": remove(`/roles/${role}`),
    "roles.edit": patch(`/roles/${role}`, { name: "by nobody", description: "", permissions: ["tasks.read"] }),
    "roles.read": get("/roles"),
    "scripts.allow": put(`/apps/${app}/scripts`, { allowed: false }),
    "scripts.edit": put(`/tasks/${task}/script`, { glue_type: "BEAN" }),
    "scripts.read": get(`/tasks/${task}/script`),
    "settings.read": get("/settings"),
    "statistics.read": get("/statistics?tenant=demo&from=0&until=1"),
    "task_logs.cancel": post(`/task-logs/${waiting}/cancel`),
    "task_logs.output": get(`/task-logs/${log}/output`),
    "task_logs.read": get(`/task-logs/${log}`),
    "tasks.apply": post("/tasks/apply", { version: 1, task: [{ tenant: "demo", app: "bells", name: "by nobody", handler: "echo", schedule: "none" }] }),
    "tasks.create": post("/tasks", { tenant: "demo", app: "bells", name: "by nobody", handler: "echo", schedule: "none" }),
    "tasks.delete": remove(`/tasks/${task}`),
    "tasks.edit": patch(`/tasks/${task}`, { description: "changed by nobody" }),
    "tasks.pause": post(`/tasks/${task}/pause`, { note: "by nobody" }),
    "tasks.read": get(`/tasks/${task}`),
    "tasks.run": post(`/tasks/${task}/run`, run),
    "tasks.start": post(`/tasks/${stopped}/start`),
    "tasks.stop": post(`/tasks/${task}/stop`),
    "tenants.create": post("/tenants", { name: "made-by-nobody" }),
    "tenants.delete": remove("/tenants/demo"),
    "tenants.edit": patch("/tenants/demo", { description: "changed by nobody" }),
    "tenants.read": get("/tenants/demo"),
    "tokens.read": get("/tokens"),
    "tokens.revoke": remove(`/tokens/${token}`),
    "users.create": post("/users", { name: "made-by-nobody", password: "Long-Enough-12", tenant: "demo" }),
    "users.delete": remove(`/users/${user}`),
    "users.edit": patch(`/users/${user}`, { disabled: true }),
    "users.read": get(`/users/${user}`),
  };
}
