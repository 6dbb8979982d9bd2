/** Figures of the tenants that one sees, of one of them, or of a task, up to now. */
import { useMemo } from "react";
import { $api, type Schema } from "../api/client";
import { fill, RANGES, sumPoints, windowOf, type Filled, type Range, type Step, type Totals } from "../lib/figures";
import { useSession } from "../api/session";
import { clusterNow, useNow } from "../lib/now";
import { ofSame } from "../lib/placeholder";
import { fromWallClock, instant, viewerZone } from "../lib/time";

/** What is asked for. */
export interface Subject {
  tenant: string | undefined;
  task?: string;
  range: Range;
  step?: Step;
}

/** What is known of it. */
export interface Figures {
  answer?: Schema<"Statistics">;
  /** The points of the range, without holes. */
  filled: Filled;
  totals: Totals;
  error: unknown;
  /** Asked for a tenant of which this viewer sees some apps only: there are no figures of a part. */
  isPartial: boolean;
  again: () => void;
}

const NOTHING: Filled = { instants: [], points: [] };

function midnight(zone: string): number {
  return fromWallClock(`${instant(clusterNow(), zone).slice(0, 10)}T00:00:00`, zone) ?? 0;
}

export function useFigures({ tenant, task, range, step = RANGES[range].step }: Subject): Figures {
  const { mayWhole } = useSession();
  const isPartial = task === undefined && tenant !== undefined && !mayWhole("statistics.read", tenant);
  const now = useNow(60_000);
  const { from, until } = windowOf(range, step, now, midnight(viewerZone()));
  // A task has its tenant; naming both would fail for a link from elsewhere.
  const of = task === undefined ? { tenant } : { task };
  const { data, error, refetch } = $api.useQuery(
    "get",
    "/statistics",
    { params: { query: { ...of, from, until, step } } },
    {
      enabled: !isPartial,
      // The window moves on, now and then; what it showed stays until the new answer is there.
      placeholderData: ofSame({ tenant: of.tenant, task: of.task, step }),
    },
  );
  const filled = useMemo(() => (data === undefined ? NOTHING : fill(data, range)), [data, range]);
  const totals = useMemo(() => sumPoints(filled.points), [filled]);
  return { answer: data, filled, totals, error, isPartial, again: () => void refetch() };
}
