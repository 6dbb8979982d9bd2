/** Who is signed in, and what they may do where. */
import { useQueryClient } from "@tanstack/react-query";
import { createContext, use, useCallback, useEffect, useMemo, type ReactNode } from "react";
import { $api, Problem, onSignedOut, setToken, type Schema } from "./client";
import type { Permission } from "./permissions";

/** The answer of `GET /session`. */
export type Me = Schema<"Me">;

/** A place that a permission is asked for: the platform, a tenant, or one app of it. */
export interface Scope {
  /** Tenant's name; absent: anywhere at all. `null`: the platform. */
  tenant?: string | null;
  /** App's id; absent: the whole tenant, or any app of it. */
  app?: string;
}

/**
 * Whether a user who holds `access` may do `permission` in `scope`. The node decides; this only
 * keeps buttons away that it would refuse.
 */
export function may(access: Me["access"], permission: Permission, scope: Scope = {}): boolean {
  return access.some((held) => {
    if (!held.permissions.includes(permission)) return false;
    const everywhere = held.tenant_id == null;
    if (everywhere) return true;
    if (scope.tenant === null) return false;
    if (scope.tenant !== undefined && held.tenant !== scope.tenant) return false;
    return scope.app === undefined || held.apps.length === 0 || held.apps.includes(scope.app);
  });
}

/** Whether `permission` is held in a whole tenant (`null`: the platform; `undefined`: any tenant), not only in some of its apps. */
export function mayWhole(access: Me["access"], permission: Permission, tenant: string | null | undefined): boolean {
  return access.some(
    (held) =>
      held.permissions.includes(permission) &&
      (held.tenant_id == null || ((tenant === undefined || held.tenant === tenant) && held.apps.length === 0)),
  );
}

/** Names of the tenants in which the user holds any permission, in order. */
export function tenantsOf(access: Me["access"]): string[] {
  return [...new Set(access.flatMap((held) => held.tenant ?? []))].sort((a, b) => a.localeCompare(b));
}

interface Session {
  me: Me;
  /** May I do this there? */
  may: (permission: Permission, scope?: Scope) => boolean;
  /** May I do this in all of that tenant (`null`: on the platform; `undefined`: of any tenant)? */
  mayWhole: (permission: Permission, tenant: string | null | undefined) => boolean;
}

const SessionContext = createContext<Session | null>(null);

/** The session of the user who is signed in. Only below [`SessionProvider`]. */
export function useSession(): Session {
  const session = use(SessionContext);
  if (session === null) throw new Error("useSession outside of SessionProvider");
  return session;
}

/** Asks who is signed in: `undefined` while nobody knows, `null` when nobody is. */
export function useMe(): { me: Me | null | undefined; error: unknown; again: () => void } {
  const queries = useQueryClient();
  const { data, error, refetch } = $api.useQuery("get", "/session", {}, { retry: false, staleTime: 60_000 });
  const unknown: unknown = error;
  const isStranger = unknown instanceof Problem && unknown.status === 401;
  const forget = useCallback(() => {
    setToken(null);
    // What the last one saw is not the next one's.
    queries.removeQueries({ predicate: (query) => query.queryKey[1] !== "/session" });
    void queries.resetQueries({ queryKey: ["get", "/session"] });
  }, [queries]);
  useEffect(() => {
    onSignedOut(forget);
    return () => onSignedOut(() => undefined);
  }, [forget]);
  const hasEnded = isStranger && data !== undefined;
  useEffect(() => {
    if (hasEnded) forget();
  }, [hasEnded, forget]);
  // Before the first child asks for anything.
  if (data !== undefined) setToken(data.csrf);
  const again = useCallback(() => void refetch(), [refetch]);
  return { me: isStranger ? null : data, error: isStranger ? null : unknown, again };
}

/** Tells its children who is signed in. */
export function SessionProvider({ me, children }: { me: Me; children: ReactNode }) {
  const session = useMemo<Session>(
    () => ({
      me,
      may: (permission, scope) => may(me.access, permission, scope),
      mayWhole: (permission, tenant) => mayWhole(me.access, permission, tenant),
    }),
    [me],
  );
  return <SessionContext value={session}>{children}</SessionContext>;
}
