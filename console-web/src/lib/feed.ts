/** Follows the output of one attempt of a run: reads its end, then what comes, and comes back when the connection is lost. */
import { client, Problem, type Schema } from "../api/client";
import { append, begin, isFull, nothing, prepend, TAIL_BYTES, type Held } from "./output";
import { backOff } from "./backOff";
import { clusterNow } from "./now";
import { listenAt } from "./stream";
import { isVisible, onVisible } from "./visible";

type PageOfOutput = Schema<"LogOutput">;

/** How the reading goes. */
export type FeedState =
  | { is: "connecting" }
  | { is: "following" }
  /** The page is full, and the user reads further up. */
  | { is: "paused" }
  /** The next try is at `until`, cluster time. */
  | { is: "lost"; until: number }
  | { is: "complete" }
  /** The run's log is gone. */
  | { is: "gone" }
  /** The node refused, and would again. */
  | { is: "refused"; error: unknown };

/** What is known of the output. */
export interface Output {
  held: Held;
  state: FeedState;
  /** The last page, without its text. */
  said?: PageOfOutput;
  /** Whether text after the window was dropped: it ends before the output does. */
  isBehind: boolean;
  /** Whether offsets count bytes, so that one can begin anywhere. Executors of xxl-job keep lines: theirs go on from where a page ended. */
  isSeekable: boolean;
}

/** Past every end: the page there is empty and says where the end is. */
const END = Number.MAX_SAFE_INTEGER;
const PAGE_BYTES = 262_144;

/** No executor keeps so much: an end beyond it counts no bytes, or is the question itself, of one that does not answer. */
const END_MAX = 2 ** 40;

/** Nothing new for so long may mean that the connection is dead: what keeps it open is not told to the page, ms. */
const QUIET_MS = 60_000;

/** States in which it goes on by itself. */
const GOES = new Set<FeedState["is"]>(["connecting", "following", "lost"]);

/** Words at the end of a stream that goes on in another. */
const GOES_ON = new Set(["time_up", "too_much", "access_changed"]);

/** Reads one page. */
async function pageOf(id: string, attempt: number, offset: number, signal: AbortSignal, bytes = PAGE_BYTES): Promise<PageOfOutput> {
  const { data } = await client.GET("/task-logs/{id}/output", { params: { path: { id }, query: { attempt, offset, bytes } }, signal });
  if (data === undefined) throw new Error("an answer without a page");
  return data;
}

/** One reader of one attempt, while the page can be seen. `changed` hears of every change; `end` closes it for good. */
export class Feed {
  output: Output = { held: nothing(0), state: { is: "connecting" }, isBehind: false, isSeekable: true };
  /** Whether what comes may push out what is shown: its reader looks at the end. */
  mayDrop = true;
  private close: (() => void) | undefined;
  private timer: number | undefined;
  private failures = 0;
  private stop = new AbortController();
  private readonly forget = onVisible(() => this.seen());

  constructor(
    private readonly id: string,
    private readonly attempt: number,
    private readonly changed: (output: Output) => void,
  ) {}

  /** Begins at the end of what there is, or begins there again. */
  toEnd(): void {
    this.halt();
    this.set({ state: { is: "connecting" } });
    void this.during(async (signal) => {
      const { next: size } = await pageOf(this.id, this.attempt, END, signal, 4);
      const isSeekable = size <= END_MAX;
      let from = isSeekable ? Math.max(0, size - TAIL_BYTES) : 0;
      const first = await pageOf(this.id, this.attempt, from, signal);
      // An offset within a character means the next one.
      if (from > 0 && first.text !== "") from = first.next - new TextEncoder().encode(first.text).length;
      this.set({ held: begin(from, first.text, first.next), isBehind: false, isSeekable });
      this.goOn(first);
    });
  }

  /** Reads what comes before the window. What no longer fits is dropped from its end, and reading on stops there. */
  async earlier(): Promise<void> {
    const { held, isSeekable } = this.output;
    if (!isSeekable) return;
    const from = Math.max(0, held.from - PAGE_BYTES);
    if (held.from === 0) return;
    const { signal } = this.stop;
    const page = await pageOf(this.id, this.attempt, from, signal, Math.max(4, held.from - from)).catch((error: unknown) => {
      if (!signal.aborted) throw error;
      return undefined;
    });
    // It has been restarted meanwhile.
    if (page === undefined) return;
    const start = page.next - new TextEncoder().encode(page.text).length;
    const now = this.output.held;
    // It has moved on while the page was on its way, or the text is not to be had any more.
    if (now.from !== held.from || page.next !== held.from) return;
    const joined = prepend(now, start, page.text);
    const isBehind = this.output.isBehind || joined.next < now.next;
    if (isBehind) this.halt();
    this.set({ held: joined, isBehind, ...(isBehind ? { state: { is: "paused" } } : {}) });
  }

  /** Closes it. */
  end(): void {
    this.forget();
    this.halt();
  }

  /** The page was hidden: it lets go. Or shown again: it goes on where it was. */
  private seen(): void {
    if (!GOES.has(this.output.state.is)) return;
    this.halt();
    this.set({ state: { is: "connecting" } });
    if (isVisible()) this.resume();
  }

  private set(change: Partial<Output>): void {
    this.output = { ...this.output, ...change };
    this.changed(this.output);
  }

  private halt(): void {
    this.stop.abort();
    this.stop = new AbortController();
    this.close?.();
    this.close = undefined;
    window.clearTimeout(this.timer);
  }

  /** Does something that asks the node; what fails is tried again, unless the node refuses it. */
  private async during(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { signal } = this.stop;
    try {
      await work(signal);
    } catch (error) {
      if (signal.aborted) return;
      const isRefused = error instanceof Problem && error.status < 500 && error.status !== 429;
      if (isRefused) this.set({ state: error.status === 404 && this.output.said !== undefined ? { is: "gone" } : { is: "refused", error } });
      else this.lost();
    }
  }

  private lost(): void {
    this.halt();
    const pause = backOff(this.failures, Math.random());
    this.failures += 1;
    this.set({ state: { is: "lost", until: clusterNow() + pause } });
    this.timer = window.setTimeout(() => this.resume(), pause);
  }

  /** Goes on from where the window ends; before anything was read, from the beginning. */
  private resume(): void {
    if (this.output.said === undefined) {
      this.toEnd();
      return;
    }
    // A page first: it says what a stream that is refused does not.
    void this.during(async (signal) => {
      const page = await pageOf(this.id, this.attempt, this.output.held.next, signal);
      this.take(page);
      this.goOn(page);
    });
  }

  private take(page: PageOfOutput): void {
    this.set({ said: { ...page, text: "" }, held: append(this.output.held, page.text, page.next) });
  }

  private goOn(page: PageOfOutput): void {
    this.set({ said: { ...page, text: "" } });
    if (page.final && !page.more) this.set({ state: { is: "complete" } });
    else this.listen();
  }

  private listen(): void {
    // Opened in the background, say: `seen` goes on.
    if (!isVisible()) return;
    const query = new URLSearchParams({ attempt: String(this.attempt), offset: String(this.output.held.next) });
    const url = `/api/v1/task-logs/${encodeURIComponent(this.id)}/output/stream?${query.toString()}`;
    this.close = listenAt(url, QUIET_MS, {
      opened: () => this.set({ state: { is: "following" } }),
      lost: () => this.lost(),
      silent: () => this.resume(),
      events: {
        message: (page: PageOfOutput) => this.heard(page),
        end: ({ why }: { why: string }) => this.ended(why),
      },
    });
  }

  private heard(page: PageOfOutput): void {
    this.failures = 0;
    if (this.mayDrop || !isFull(this.output.held)) {
      this.take(page);
      return;
    }
    this.halt();
    this.set({ state: { is: "paused" }, isBehind: true });
  }

  private ended(why: string): void {
    this.halt();
    if (why === "run_gone") this.set({ state: { is: "gone" } });
    else if (GOES_ON.has(why)) this.resume();
    else if (why === "node_stops") this.lost();
    else this.set({ state: { is: "complete" } });
  }
}

/** The whole output, as it is, in parts; `progress` hears how many bytes there are. It ends where the output ends now. */
export async function wholeOutput(id: string, attempt: number, progress: (bytes: number) => void): Promise<string[]> {
  const { signal } = new AbortController();
  const parts: string[] = [];
  let read = 0;
  for (let offset = 0; ; ) {
    const page = await pageOf(id, attempt, offset, signal);
    parts.push(page.text);
    read += new TextEncoder().encode(page.text).length;
    progress(read);
    if (!page.more || page.next <= offset) return parts;
    offset = page.next;
  }
}
