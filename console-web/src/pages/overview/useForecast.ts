/** How many fires each minute of the coming 24 hours will have. */
import { $api } from "../../api/client";
import { useSession } from "../../api/session";
import type { Forecast } from "../../lib/heat";

/** `undefined` while it is not known, and for those who may not look at tasks. */
export function useForecast(tenant: string | undefined): { forecast: Forecast | undefined; error: unknown; again: () => void } {
  const { may } = useSession();
  const enabled = may("tasks.read", { tenant });
  const { data, error, refetch } = $api.useQuery("get", "/fires/forecast", { params: { query: { tenant } } }, { enabled, placeholderData: (last) => last });
  return { forecast: data, error, again: () => void refetch() };
}
