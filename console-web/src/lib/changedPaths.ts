/** Which answers a kind of change makes old. */

/** Beginnings of the paths whose answers a kind of change makes old. */
const PATHS: Record<string, readonly string[]> = {
  tasks: ["/tasks", "/fires", "/tenants/{tenant}/origins"],
  task_logs: ["/task-logs", "/fires/upcoming", "/tasks/{id}/graph", "/tasks/{id}/backfills"],
  apps: ["/apps"],
  keys: ["/apps/{id}/keys"],
  executors: ["/executors"],
  nodes: ["/nodes"],
  tenants: ["/tenants"],
  users: ["/users", "/session"],
  roles: ["/roles", "/session"],
  tokens: ["/tokens", "/account/tokens"],
  calendars: ["/calendars", "/fires/forecast", "/tasks/{id}/preview"],
  // They are part of the tenant, and share its revision.
  quotas: ["/tenants/{tenant}"],
  maintenance: ["/tenants/{tenant}/maintenance", "/tasks/{id}/preview"],
  backfills: ["/tasks/{id}/backfills"],
  statistics: ["/statistics"],
  audit: ["/audit"],
};

/** All of them for these kinds; a kind that this page does not know makes nothing old. */
export function pathsOf(kinds: readonly string[]): string[] {
  return kinds.flatMap((kind) => PATHS[kind] ?? []);
}
