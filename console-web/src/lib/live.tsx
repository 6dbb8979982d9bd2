/** Live updates: the node tells what has changed (server-sent events), and what shows it is read again. */
import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import { createContext, use, useEffect, useMemo, useState, type ReactNode } from "react";
import { clusterNow, heardClusterTime } from "./now";
import { backOff, failuresWith, SILENCE_MS } from "./backOff";
import { pathsOf } from "./changedPaths";
import { listenAt } from "./stream";
import { useVisible } from "./visible";
import { renew } from "../api/renew";

/** How the stream is. */
export type LiveState =
  | { is: "connecting" }
  | { is: "connected" }
  /** Lost; the next try is at `until` (cluster time, epoch ms). */
  | { is: "disconnected"; until: number };

interface Live {
  state: LiveState;
  /** Tries at once. */
  tryNow: () => void;
  /** The version that the node says it is; another than at first after an upgrade. */
  version: string | undefined;
  isOther: boolean;
}

const LiveContext = createContext<Live>({ state: { is: "connecting" }, tryNow: () => undefined, version: undefined, isOther: false });

/** How the live updates are. */
export function useLive(): Live {
  return use(LiveContext);
}

/** Has everything read again that one of these paths showed. */
function readAgain(queries: QueryClient, kinds: readonly string[]): void {
  const paths = pathsOf(kinds);
  void renew(queries, {
    predicate: ({ queryKey }) => typeof queryKey[1] === "string" && paths.some((path) => (queryKey[1] as string).startsWith(path)),
  });
}

/** What comes out of the stream. */
interface Listener {
  hello: (version: string) => void;
  changed: (kinds: readonly string[]) => void;
  /** The node ended it, in good order: after an hour, or because it stops, or because rights have changed. */
  ended: () => void;
  lost: () => void;
}

/** Listens until it is told to stop; says once when the stream has ended or is lost. */
function listen(tenant: string | undefined, on: Listener): () => void {
  const query = tenant === undefined ? "" : `?tenant=${encodeURIComponent(tenant)}`;
  const stop = listenAt(`/api/v1/events${query}`, SILENCE_MS, {
    events: {
      hello({ cluster_time, version }: { cluster_time: number; version: string }) {
        heardClusterTime(cluster_time);
        on.hello(version);
      },
      changed: ({ kinds }: { kinds: string[] }) => on.changed(kinds),
      end() {
        stop();
        on.ended();
      },
    },
    lost: on.lost,
    silent: on.lost,
  });
  return stop;
}

/** Keeps a stream open for its children, of one tenant or of all that one may see, while the page can be seen. */
export function LiveProvider({ tenant, children }: { tenant: string | undefined; children: ReactNode }) {
  const queries = useQueryClient();
  const [state, setState] = useState<LiveState>({ is: "connecting" });
  const [versions, setVersions] = useState<{ first: string; last: string }>();
  // Another object with each try.
  const [attempt, setAttempt] = useState({ failures: 0 });
  const isVisible = useVisible();
  const [wasVisible, setWasVisible] = useState(isVisible);
  if (wasVisible !== isVisible) {
    setWasVisible(isVisible);
    setState({ is: "connecting" });
    setAttempt({ failures: 0 });
  }

  useEffect(() => {
    if (!isVisible) return undefined;
    let wait: number | undefined;
    let since: number | undefined;
    const again = (pause: number, failures: number) => {
      // Perhaps nobody is signed in any more, or may do other things: a stream cannot tell.
      void renew(queries, { queryKey: ["get", "/session"] });
      wait = window.setTimeout(() => setAttempt({ failures }), pause);
    };
    const stop = listen(tenant, {
      hello(version) {
        if (since === undefined) {
          since = performance.now();
          // What has changed before the first word of a stream has passed unheard.
          void renew(queries);
        }
        setVersions((seen) => ({ first: seen?.first ?? version, last: version }));
        setState({ is: "connected" });
      },
      changed: (kinds) => readAgain(queries, kinds),
      ended() {
        setState({ is: "connecting" });
        again(backOff(0, Math.random()), 0);
      },
      lost() {
        const failures = failuresWith(attempt.failures, since === undefined ? 0 : performance.now() - since);
        const pause = backOff(failures - 1, Math.random());
        setState({ is: "disconnected", until: clusterNow() + pause });
        again(pause, failures);
      },
    });
    return () => {
      stop();
      window.clearTimeout(wait);
    };
  }, [tenant, attempt, queries, isVisible]);

  const live = useMemo<Live>(
    () => ({
      state,
      tryNow: () => setAttempt({ failures: 0 }),
      version: versions?.last,
      isOther: versions !== undefined && versions.first !== versions.last,
    }),
    [state, versions],
  );
  return <LiveContext value={live}>{children}</LiveContext>;
}
