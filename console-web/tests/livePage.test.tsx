import { QueryClient, QueryClientProvider, useQuery } from "@tanstack/react-query";
import { act, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { LiveProvider, useLive } from "../src/lib/live";
import { PAUSE_MIN_MS, STEADY_MS } from "../src/lib/backOff";
import { show, Source } from "./stream";

let reads = 0;

function Probe() {
  const { state } = useLive();
  const { data } = useQuery({ queryKey: ["get", "/tasks"], queryFn: () => Promise.resolve(++reads), staleTime: Infinity });
  return <output>{`${state.is} ${data ?? "nothing"}`}</output>;
}

const shown = () => screen.getByRole("status").textContent;
const settle = (ms = 10) => act(() => vi.advanceTimersByTimeAsync(ms));
const hello = async () => {
  Source.last().say("hello", { cluster_time: Date.now(), version: "1" });
  await settle();
};

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("EventSource", Source);
  Source.all = [];
  reads = 0;
});

afterEach(() => {
  show("visible");
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

let queries: QueryClient;

function page(tenant?: string) {
  return (
    <QueryClientProvider client={queries}>
      <LiveProvider tenant={tenant}>
        <Probe />
      </LiveProvider>
    </QueryClientProvider>
  );
}

function open(tenant?: string) {
  queries = new QueryClient();
  return render(page(tenant));
}

it("comes back as soon as the first time, however often a good stream was lost", async () => {
  open();
  for (let losses = 0; losses < 6; losses++) {
    await hello();
    expect(shown()).toMatch(/^connected/);
    await settle(STEADY_MS);
    const before = Source.all.length;
    act(() => Source.last().fail());
    expect(shown()).toMatch(/^disconnected/);
    await settle(PAUSE_MIN_MS + 10);
    expect(Source.all.length).toBe(before + 1);
  }
});

it("waits longer and longer for a node that says hello and is gone at once", async () => {
  open();
  for (let losses = 0; losses < 4; losses++) {
    await hello();
    act(() => Source.last().fail());
    await settle(20_000);
  }
  await hello();
  const before = Source.all.length;
  act(() => Source.last().fail());
  await settle(PAUSE_MIN_MS + 10);
  expect(Source.all.length).toBe(before);
});

it("holds no stream while the page is hidden, and has everything read again when it is shown", async () => {
  open();
  await hello();
  const before = shown().split(" ")[1];
  act(() => show("hidden"));
  await settle(120_000);
  expect(Source.open()).toHaveLength(0);
  expect(shown()).toMatch(/^connecting/);
  act(() => show("visible"));
  expect(Source.open()).toHaveLength(1);
  await hello();
  expect(shown()).toBe(`connected ${Number(before) + 1}`);
});

it("reads again what was read before the first word of a stream, and only then", async () => {
  const { rerender } = open("demo");
  await settle();
  expect(shown()).toBe("connecting 1");
  await hello();
  expect(shown()).toBe("connected 2");
  await hello();
  expect(shown()).toBe("connected 2");
  // What changes in one tenant is not told to who looks at another.
  rerender(page("retail"));
  await settle();
  await hello();
  expect(shown()).toBe("connected 3");
});

it("reads again what a page that was opened in the background had read", async () => {
  show("hidden");
  open();
  await settle(120_000);
  expect(Source.all).toHaveLength(0);
  expect(shown()).toBe("connecting 1");
  act(() => show("visible"));
  await hello();
  expect(shown()).toBe("connected 2");
});
