import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, fireEvent, render, screen } from "@testing-library/react";
import i18next from "i18next";
import { initReactI18next } from "react-i18next";
import { afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { say } from "../e2e/harness/words";
import { $api } from "../src/api/client";
import en from "../src/i18n/en";
import { BY_AFTER, itemsOf, List } from "../src/parts/List";
import { answered } from "./answered";

const words = en.common;
const PAGE = 3;
/** What the node answers to the page of that number; the first is 0. */
let answer: (page: number) => { status: number; isLast?: boolean };
let asked = 0;

beforeAll(async () => {
  await i18next.use(initReactI18next).init({ lng: "en", defaultNS: "common", resources: { en }, interpolation: { escapeValue: false } });
});

beforeEach(() => {
  vi.useFakeTimers();
  asked = 0;
  vi.stubGlobal("fetch", (request: Request) => {
    asked += 1;
    const page = Number(new URL(request.url).searchParams.get("after") ?? 0);
    const { status, isLast = false } = answer(page);
    const items = Array.from({ length: PAGE }, (_, index) => ({ id: `${page}-${index}`, name: `app ${page}-${index}` }));
    const body = status === 200 ? { items, next: isLast ? null : String(page + 1) } : { status, title: "no", detail: "the node says no" };
    return Promise.resolve(answered(body, status));
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** A list that shows what matches of what it reads. */
function Apps({ matches }: { matches: (name: string) => boolean }) {
  const pages = $api.useInfiniteQuery("get", "/apps", { params: { query: { limit: PAGE } } }, BY_AFTER);
  const items = itemsOf(pages).filter(({ name }) => matches(name));
  return <List label="Apps" pages={pages} items={items} rowKey={({ id }) => id} columns={[{ title: "Name", dataIndex: "name" }]} card={({ name }) => name} isFiltered />;
}

async function open(matches: (name: string) => boolean) {
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  render(
    <QueryClientProvider client={queries}>
      <Apps matches={matches} />
    </QueryClientProvider>,
  );
  await settle();
  return queries;
}

const settle = () => act(() => vi.advanceTimersByTimeAsync(6_000));
const press = async (name: string) => {
  // A button of two Chinese characters gets a space; of English words none.
  fireEvent.click(screen.getByRole("button", { name }));
  await settle();
};

/** Holds answers back, all or that to one page, until what it gives is called. */
function hold(after?: string): () => void {
  let release = () => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  const quick = globalThis.fetch;
  vi.stubGlobal("fetch", async (request: Request) => {
    if (after === undefined || new URL(request.url).searchParams.get("after") === after) await held;
    return quick(request);
  });
  return release;
}

it("does not ask again by itself for a page that was refused", async () => {
  answer = (page) => ({ status: page === 0 ? 200 : 400 });
  await open(() => true);
  expect(asked).toBe(2);
  expect(screen.getByText("app 0-2")).toBeTruthy();
  expect(screen.getByRole("alert").textContent).toContain("the node says no");
  await press(words.retry);
  expect(asked).toBe(3);
  answer = (page) => ({ status: 200, isLast: page === 2 });
  await press(words.retry);
  expect(asked).toBe(5);
  expect(screen.queryByRole("alert")).toBeNull();
  expect(screen.getByText("app 2-2")).toBeTruthy();
  expect(screen.getByText(words.end_of_list)).toBeTruthy();
});

it("says no less of a refused page when nothing was found before it", async () => {
  answer = (page) => ({ status: page === 0 ? 200 : 400 });
  await open(() => false);
  expect(asked).toBe(2);
  expect(screen.queryByText(words.empty_filtered)).toBeNull();
  await press(words.retry);
  expect(asked).toBe(3);
});

it("looks through some pages, says how far, and goes on when it is told to", async () => {
  answer = (page) => ({ status: 200, isLast: page === 24 });
  await open((name) => name === "app 22-1");
  const first = asked;
  expect(first).toBeGreaterThan(5);
  expect(first).toBeLessThan(15);
  expect(screen.queryByText(words.empty_filtered)).toBeNull();
  expect(screen.getByRole("status").textContent).toBe(say(words.looked_through, { count: first * PAGE }));
  await press(words.look_further);
  expect(asked).toBeGreaterThan(first);
  expect(screen.queryByText("app 22-1")).toBeNull();
  await press(words.look_further);
  expect(screen.getByText("app 22-1")).toBeTruthy();
  expect(asked).toBe(25);
  expect(screen.getByText(words.end_of_list)).toBeTruthy();
});

it("says that nothing matches only when all was looked through", async () => {
  answer = (page) => ({ status: 200, isLast: page === 2 });
  await open(() => false);
  expect(asked).toBe(3);
  expect(screen.getByText(words.empty_filtered)).toBeTruthy();
});

it("does not say that there is nothing before an answer came", async () => {
  answer = () => ({ status: 200, isLast: true });
  const release = hold();
  await open(() => false);
  expect(screen.queryByText(words.empty_filtered)).toBeNull();
  release();
  await settle();
  expect(screen.getByText(words.empty_filtered)).toBeTruthy();
});

it("reads a further page after what is being read again, not instead of it", async () => {
  answer = () => ({ status: 200 });
  const queries = await open(() => true);
  const first = asked;
  const release = hold();
  act(() => void queries.invalidateQueries());
  await settle();
  await press(words.more);
  expect(asked).toBe(first);
  release();
  await settle();
  // Each page that was there once more, and the one that was asked for.
  expect(asked).toBe(2 * first + 1);
  expect(screen.getByText(say(words.loaded_rows, { count: (first + 1) * PAGE }))).toBeTruthy();
});

it("keeps pages apart from one answer to the same question", async () => {
  answer = () => ({ status: 200, isLast: true });
  const queries = await open(() => true);
  const { queryKey } = $api.queryOptions("get", "/apps", { params: { query: { limit: PAGE } } });
  expect(queries.getQueryData(queryKey)).toBeUndefined();
});

it("says that it still looks", async () => {
  answer = () => ({ status: 200 });
  const release = hold("2");
  await open(() => false);
  expect(screen.getByText(say(words.still_looking, { count: 2 * PAGE }))).toBeTruthy();
  expect(screen.getByRole("region", { name: "Apps" }).getAttribute("aria-busy")).toBe("true");
  release();
  await settle();
});
