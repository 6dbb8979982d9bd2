/** The tenant that the pages are about: `?tenant=` in the address, kept in every link of the menu. */
import { useCallback } from "react";
import { useSearchParams } from "react-router";
import { tenantsOf, useSession } from "../api/session";
import { withFilters } from "./search";

const KEPT = "carillon.tenant";

/** The tenant that was looked at last here; where a page is opened without one. */
export function keptTenant(): string | undefined {
  return sessionStorage.getItem(KEPT) ?? undefined;
}

/** The chosen tenant's name; `undefined` is all that one may see. */
export function useTenant(): { tenant: string | undefined; choose: (tenant: string | undefined) => void } {
  const [search, setSearch] = useSearchParams();
  const { me } = useSession();
  const named = search.get("tenant") ?? undefined;
  // Users of a single tenant need not choose it.
  const names = tenantsOf(me.access);
  const seesAll = me.access.some((held) => held.tenant_id == null);
  const tenant = named ?? (!seesAll && names.length === 1 ? names[0] : undefined);
  const choose = useCallback(
    (chosen: string | undefined) => {
      if (chosen === undefined) sessionStorage.removeItem(KEPT);
      else sessionStorage.setItem(KEPT, chosen);
      // Apps, tasks and executors belong to one tenant; so do cursors.
      setSearch((now) => withFilters(now, { tenant: chosen, app: undefined, task: undefined, executor: undefined }), { replace: true });
    },
    [setSearch],
  );
  return { tenant, choose };
}

/** An address of a page that goes on with the chosen tenant. */
export function useLink(): (path: string, search?: Record<string, string | undefined>) => string {
  const { tenant } = useTenant();
  return useCallback(
    (path, search = {}) => {
      const text = withFilters(new URLSearchParams(), { tenant, ...search }).toString();
      return text === "" ? path : `${path}?${text}`;
    },
    [tenant],
  );
}
