import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Feed, type Output } from "../src/lib/feed";
import { answered } from "./answered";
import { show, Source } from "./stream";

const bytes = (text: string) => new TextEncoder().encode(text).length;
let stored = "";
let isFinal = false;
let status = 200;
let asked: URL[] = [];

function page(offset: number) {
  const all = new TextEncoder().encode(stored);
  const text = new TextDecoder().decode(all.slice(offset));
  return { attempt: 1, state: isFinal ? "ended" : "running", final: isFinal, text, next: all.length, more: false, cut: false, executor: null, executor_heard_at: null, detail: "" };
}

const outputs: Output[] = [];
const last = () => outputs.at(-1);
const text = () => last()?.held.blocks.flatMap((block) => block.rows.map((row) => row.text)).join("\n");
const lastSource = () => Source.all.at(-1);
let feed: Feed;

beforeEach(() => {
  vi.useFakeTimers();
  Source.all = [];
  outputs.length = 0;
  asked = [];
  [stored, isFinal, status] = ["", false, 200];
  vi.stubGlobal("EventSource", Source);
  vi.stubGlobal("fetch", (request: Request) => {
    const url = new URL(request.url);
    asked.push(url);
    const offset = Math.min(Number(url.searchParams.get("offset")), bytes(stored));
    const body = status === 200 ? page(offset) : { status, title: "no", detail: "no" };
    return Promise.resolve(answered(body, status));
  });
  feed = new Feed("7", 1, (output) => outputs.push(output));
});
afterEach(() => {
  feed.end();
  show("visible");
  vi.useRealTimers();
  vi.unstubAllGlobals();
});
const settle = () => vi.advanceTimersByTimeAsync(10);

describe("following the output of an executor that keeps lines", () => {
  const LINE = 2 ** 24;
  const lines = ["one", "two"];
  const pageAt = (offset: number) => {
    const line = Math.max(1, Math.floor(offset / LINE));
    const rest = lines.slice(line - 1).map((each) => `${each}\n`).join("");
    const next = line > lines.length ? line * LINE : (lines.length + 1) * LINE;
    return { ...page(0), text: rest, next };
  };
  it("reads from the first line, then goes on where the page ended", async () => {
    vi.stubGlobal("fetch", (request: Request) => {
      const url = new URL(request.url);
      asked.push(url);
      return Promise.resolve(answered(pageAt(Number(url.searchParams.get("offset"))), 200));
    });
    feed.toEnd();
    await settle();
    expect(text()).toBe("one\ntwo");
    expect(last()).toMatchObject({ isSeekable: false, held: { from: 0 } });
    expect(lastSource()?.url).toContain(`offset=${3 * LINE}`);
    const before = asked.length;
    await feed.earlier();
    expect(asked).toHaveLength(before);
  });
  it("has no end to show of one that does not answer: it begins at the beginning", async () => {
    vi.stubGlobal("fetch", (request: Request) => {
      const offset = Number(new URL(request.url).searchParams.get("offset"));
      return Promise.resolve(answered({ ...page(0), state: "unreachable", text: "", next: offset }, 200));
    });
    feed.toEnd();
    await settle();
    expect(last()?.held).toMatchObject({ from: 0, next: 0 });
  });
});

describe("following an output", () => {
  it("reads what there is, then what comes, and ends with the output", async () => {
    stored = "one\ntwo ü\n";
    feed.toEnd();
    await settle();
    expect(text()).toBe("one\ntwo ü");
    expect(lastSource()?.url).toContain(`offset=${bytes(stored)}`);
    lastSource()?.dispatchEvent(new Event("open"));
    expect(last()?.state.is).toBe("following");
    lastSource()?.say("message", { ...page(0), text: "three\n", next: bytes(stored) + 6 });
    expect(text()).toBe("one\ntwo ü\nthree");
    lastSource()?.say("end", { why: "complete" });
    expect(last()?.state.is).toBe("complete");
    expect(lastSource()?.isClosed).toBe(true);
  });

  it("opens no stream for an output that is whole", async () => {
    [stored, isFinal] = ["all\n", true];
    feed.toEnd();
    await settle();
    expect(last()?.state.is).toBe("complete");
    expect(Source.all).toHaveLength(0);
  });

  it("comes back from its last offset, with longer and longer pauses", async () => {
    stored = "one\n";
    feed.toEnd();
    await settle();
    stored += "two\n";
    lastSource()?.dispatchEvent(new Event("error"));
    expect(last()?.state.is).toBe("lost");
    expect(Source.all).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1_100);
    expect(text()).toBe("one\ntwo");
    expect(asked.at(-1)?.searchParams.get("offset")).toBe("4");
    expect(Source.all).toHaveLength(2);
    lastSource()?.dispatchEvent(new Event("error"));
    await vi.advanceTimersByTimeAsync(900);
    expect(Source.all).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(1_200);
    expect(Source.all).toHaveLength(3);
    expect(text()).toBe("one\ntwo");
  });

  it("goes on at once when its time is up", async () => {
    feed.toEnd();
    await settle();
    lastSource()?.say("end", { why: "time_up" });
    await settle();
    expect(Source.all).toHaveLength(2);
  });

  it("asks again when nothing is heard for long: the connection may be dead", async () => {
    feed.toEnd();
    await settle();
    await vi.advanceTimersByTimeAsync(61_000);
    expect(Source.all[0]?.isClosed).toBe(true);
    expect(Source.all).toHaveLength(2);
  });

  it("does not insist where it is refused, but does where it is only too much", async () => {
    status = 403;
    feed.toEnd();
    await settle();
    expect(last()?.state.is).toBe("refused");
    status = 429;
    feed.toEnd();
    await settle();
    expect(last()?.state.is).toBe("lost");
    status = 200;
    await vi.advanceTimersByTimeAsync(1_100);
    expect(Source.all).toHaveLength(1);
  });

  it("says when retention took the run", async () => {
    feed.toEnd();
    await settle();
    lastSource()?.say("end", { why: "run_gone" });
    expect(last()?.state.is).toBe("gone");
  });

  it("stops rather than push out what the user reads", async () => {
    feed.toEnd();
    await settle();
    const many = "line\n".repeat(4_950);
    lastSource()?.say("message", { ...page(0), text: many, next: many.length });
    feed.mayDrop = false;
    lastSource()?.say("message", { ...page(0), text: "more\n", next: many.length + 5 });
    expect(last()).toMatchObject({ state: { is: "paused" }, isBehind: true });
    expect(lastSource()?.isClosed).toBe(true);
    expect(last()?.held.next).toBe(many.length);
  });

  it("holds no stream while the page is hidden, and goes on where it was", async () => {
    stored = "one\n";
    feed.toEnd();
    await settle();
    show("hidden");
    expect(Source.open()).toHaveLength(0);
    stored += "two\n";
    const before = asked.length;
    await vi.advanceTimersByTimeAsync(120_000);
    expect(asked).toHaveLength(before);
    show("visible");
    await settle();
    expect(text()).toBe("one\ntwo");
    expect(Source.open()).toHaveLength(1);
    expect(lastSource()?.url).toContain("offset=8");
    lastSource()?.say("end", { why: "complete" });
    show("hidden");
    show("visible");
    await settle();
    expect(last()?.state.is).toBe("complete");
    expect(Source.open()).toHaveLength(0);
  });

  it("opens no stream in the background", async () => {
    show("hidden");
    stored = "one\n";
    feed.toEnd();
    await settle();
    expect(text()).toBe("one");
    expect(Source.all).toHaveLength(0);
    show("visible");
    await settle();
    expect(Source.open()).toHaveLength(1);
  });

  it("begins near the end of a long output, and reads earlier text when asked", async () => {
    stored = Array.from({ length: 60_000 }, (_, index) => `line ${String(index).padStart(5, "0")}\n`).join("");
    feed.toEnd();
    await settle();
    const from = last()?.held.from ?? 0;
    expect(from).toBeGreaterThan(0);
    expect(text()?.endsWith("line 59999")).toBe(true);
    // The stand-in sends all that follows; a node sends as much as was asked for.
    const whole = stored;
    stored = whole.slice(0, from);
    await feed.earlier();
    expect(last()?.held.from).toBeLessThan(from);
    expect(last()?.isBehind).toBe(true);
  });
});
