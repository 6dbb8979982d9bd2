/** A tenant's quotas for a row of a list: few are asked for at once. */
import { useQuery } from "@tanstack/react-query";
import { $api } from "../../api/client";
import { turns } from "../../lib/turns";

/** So that a long list leaves the browser's connections to what people do. */
const take = turns(3);

/** The quotas, and what is used of them. */
export function useQuotas(tenant: string) {
  const options = $api.queryOptions("get", "/tenants/{tenant}/quotas", { params: { path: { tenant } } });
  const { queryFn } = options;
  return useQuery({ ...options, queryFn: (context) => take(async () => queryFn(context)) });
}
