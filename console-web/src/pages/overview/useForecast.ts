/** How many fires each minute of the coming 24 hours will have. */
import { $api } from "../../api/client";
import { useSession } from "../../api/session";
import type { Forecast } from "../../lib/heat";
import { ofSame } from "../../lib/placeholder";

/** The 24 hours move on, ms. */
const MOVES_ON_MS = 300_000;

/** `undefined` while it is not known; nothing for those who may not look at tasks. */
export function useForecast(tenant: string | undefined): { isAllowed: boolean; forecast: Forecast | undefined; error: unknown; again: () => void } {
  const { may } = useSession();
  const isAllowed = may("tasks.read", { tenant });
  const { data, error, refetch } = $api.useQuery("get", "/fires/forecast", { params: { query: { tenant } } }, { enabled: isAllowed, placeholderData: ofSame({ tenant }), refetchInterval: MOVES_ON_MS });
  return { isAllowed, forecast: data, error, again: () => void refetch() };
}
