/** Executors put together by their app. */
import type { Schema } from "../api/client";

/** How much the executors of an app have to do. */
export interface AppLoad {
  key: string;
  tenant: string;
  app: string;
  online: number;
  running: number;
  held: number;
  /** Absent where one does not tell its own. */
  capacity: number | undefined;
}

/** The apps with the most runs first. */
export function byApp(executors: readonly Pick<Schema<"Executor">, "app_id" | "tenant" | "app" | "running" | "held" | "capacity" | "plain">[]): AppLoad[] {
  const apps = new Map<string, AppLoad>();
  for (const { app_id: key, tenant, app, running, held, capacity, plain } of executors) {
    const known = apps.get(key) ?? { key, tenant, app, online: 0, running: 0, held: 0, capacity: 0 };
    const together = plain || known.capacity === undefined ? undefined : known.capacity + capacity;
    apps.set(key, { ...known, online: known.online + 1, running: known.running + running, held: known.held + held, capacity: together });
  }
  return [...apps.values()].sort((a, b) => b.running - a.running || a.tenant.localeCompare(b.tenant) || a.app.localeCompare(b.app));
}
