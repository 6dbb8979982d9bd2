/** How many fires each minute of the coming 24 hours will have. */
import type { Forecast } from "../../lib/heat";

/** `undefined` while it is not known. */
export function useForecast(): { forecast: Forecast | undefined; error: unknown; again: () => void } {
  return { forecast: undefined, error: null, again: () => undefined };
}
