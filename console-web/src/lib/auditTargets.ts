/** Which page shows what an entry of the audit is about. */

/** Path and search of the page; absent: there is none. */
export interface Target {
  path: string;
  search?: Record<string, string>;
}

/** The page of a thing. Of what was deleted it says so itself; a tenant's own page names it. */
export function pageOf(kind: string, id: string, name: string): Target | undefined {
  switch (kind) {
    case "task":
      return { path: `/tasks/${id}` };
    case "task_log":
      return { path: `/logs/${id}` };
    case "app":
      return { path: `/apps/${id}` };
    case "user":
      return { path: `/users/${id}` };
    case "role":
      return { path: "/roles", search: { role: id } };
    case "tenant":
      return { path: "/quotas", search: { tenant: name } };
    case "calendar":
      return { path: "/calendars" };
    case "maintenance_window":
      return { path: "/maintenance" };
    case "executor":
      return { path: "/executors" };
    default:
      return undefined;
  }
}
