/** The cluster's clock as this page knows it. The viewer's own clock may be wrong; nothing is judged by it. */
import { useSyncExternalStore } from "react";

/** Cluster time minus this machine's, ms. */
let ahead = 0;

/** The node has just said what time it is. */
export function heardClusterTime(at: number): void {
  ahead = at - Date.now();
}

/** Now, in cluster time, epoch ms. */
export function clusterNow(): number {
  return Date.now() + ahead;
}

interface Ticker {
  listeners: Set<() => void>;
  now: number;
  timer: number | undefined;
}

// One timer for each period in use, however many places show a span.
const tickers = new Map<number, Ticker>();

function ticker(period: number): Ticker {
  let found = tickers.get(period);
  if (found === undefined) {
    found = { listeners: new Set(), now: clusterNow(), timer: undefined };
    tickers.set(period, found);
  }
  return found;
}

function listen(period: number, listener: () => void): () => void {
  const of = ticker(period);
  of.listeners.add(listener);
  of.timer ??= window.setInterval(() => {
    of.now = clusterNow();
    for (const each of of.listeners) each();
  }, period);
  return () => {
    of.listeners.delete(listener);
    if (of.listeners.size === 0) {
      window.clearInterval(of.timer);
      of.timer = undefined;
    }
  };
}

/** Now, in cluster time, renewed every `period` ms. */
export function useNow(period: number): number {
  return useSyncExternalStore(
    (listener) => listen(period, listener),
    () => {
      const of = ticker(period);
      // Nobody has renewed it while nobody listened.
      if (of.timer === undefined && Math.abs(clusterNow() - of.now) > period) of.now = clusterNow();
      return of.now;
    },
  );
}
