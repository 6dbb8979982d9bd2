/** Permissions: what a user holds in a scope, and how they are shown in groups. The node decides; this only prepares. */
import type { Schema } from "../api/client";

type Access = Schema<"Me">["access"];
type Described = Schema<"Permission">;

/** Where a grant, a role or an account stands. */
export interface Where {
  /** Id of the tenant; `null` is the platform. */
  tenantId: string | null;
  /** Only in these apps (ids); none are all. */
  apps?: readonly string[];
}

/** Do nothing when they are granted in a tenant; docs/permissions.md marks them. */
export const PLATFORM_ONLY: ReadonlySet<string> = new Set([
  "tenants.create",
  "tenants.edit",
  "tenants.delete",
  "quotas.edit",
  "nodes.read",
  "cluster.resume",
  "clusters.read",
  "settings.read",
  "metrics.read",
]);

/** All permissions held in the whole scope: in each of its apps, where apps are named. */
export function heldIn(access: Access, { tenantId, apps = [] }: Where): Set<string> {
  const there = (app: string | undefined) =>
    new Set(
      access
        .filter((held) => held.tenant_id == null || (held.tenant_id === tenantId && (held.apps.length === 0 || (app !== undefined && held.apps.includes(app)))))
        .flatMap((held) => held.permissions),
    );
  const [first = new Set<string>(), ...others] = apps.length === 0 ? [there(undefined)] : apps.map(there);
  return new Set([...first].filter((permission) => others.every((other) => other.has(permission))));
}

/** All permissions held anywhere. */
export function heldAnywhere(access: Access): Set<string> {
  return new Set(access.flatMap((held) => held.permissions));
}

/** The permissions among `wanted` that would do something there, and yet are not held there. */
export function lacking(access: Access, wanted: readonly string[], where: Where): string[] {
  const held = heldIn(access, where);
  return wanted.filter((permission) => !held.has(permission) && (where.tenantId === null || !PLATFORM_ONLY.has(permission)));
}

/** Permissions about one kind of thing. */
export interface PermissionGroup {
  resource: string;
  permissions: Described[];
}

/** `tasks.read` is about `tasks`: groups in the order in which their first one comes. */
export function groupPermissions(permissions: readonly Described[], search = ""): PermissionGroup[] {
  const wanted = search.trim().toLowerCase();
  const groups = new Map<string, Described[]>();
  for (const permission of permissions) {
    if (!`${permission.name} ${permission.description}`.toLowerCase().includes(wanted)) continue;
    const resource = permission.name.split(".")[0] ?? permission.name;
    groups.set(resource, [...(groups.get(resource) ?? []), permission]);
  }
  return [...groups].map(([resource, members]) => ({ resource, permissions: members }));
}
