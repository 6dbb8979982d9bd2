/** The cluster's clock as this page knows it. The viewer's own clock may be wrong; nothing is judged by it. */
import { useSyncExternalStore } from "react";

/** Cluster time minus this machine's, ms, as it was heard last: the word may have been long on its way, so the most of them is the best. */
let heard: readonly number[] = [];

/** Words that are looked at: those of a minute. */
const WORDS = 6;

/** A word that is so much behind was not late: a clock was set, ms. */
const SET_MS = 5_000;

/** The node has just said what time it is. */
export function heardClusterTime(at: number): void {
  const ahead = at - Date.now();
  const before = heard.every((other) => Math.abs(other - ahead) < SET_MS) ? heard : [];
  heard = [...before, ahead].slice(-WORDS);
}

/** Now, in cluster time, epoch ms. */
export function clusterNow(): number {
  return Date.now() + (heard.length === 0 ? 0 : Math.max(...heard));
}

interface Ticker {
  listeners: Set<() => void>;
  now: number;
  timer: number | undefined;
  /** The same function each time: with another one React would stop and start the timer at each drawing. */
  listen: (listener: () => void) => () => void;
  read: () => number;
}

// One timer for each period in use, however many places show a span.
const tickers = new Map<number, Ticker>();

function made(period: number): Ticker {
  const ticker: Ticker = {
    listeners: new Set(),
    now: clusterNow(),
    timer: undefined,
    listen(listener) {
      ticker.listeners.add(listener);
      ticker.timer ??= window.setInterval(() => {
        ticker.now = clusterNow();
        for (const each of ticker.listeners) each();
      }, period);
      return () => {
        ticker.listeners.delete(listener);
        if (ticker.listeners.size > 0) return;
        window.clearInterval(ticker.timer);
        ticker.timer = undefined;
      };
    },
    read() {
      // Nobody has renewed it while nobody listened.
      if (ticker.timer === undefined && Math.abs(clusterNow() - ticker.now) > period) ticker.now = clusterNow();
      return ticker.now;
    },
  };
  return ticker;
}

/** Now, in cluster time, renewed every `period` ms. */
export function useNow(period: number): number {
  let ticker = tickers.get(period);
  if (ticker === undefined) {
    ticker = made(period);
    tickers.set(period, ticker);
  }
  return useSyncExternalStore(ticker.listen, ticker.read);
}
