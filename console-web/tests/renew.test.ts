/** What is read again, and how often: changes may be told faster than the node answers. */
import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { renew, renewed } from "../src/api/renew";

const ANSWER_MS = 1_500;

let queries: QueryClient;
/** What the node would say now; an answer tells what it was when it was asked. */
let state: number;
let asked: number;

function show(key: string): QueryObserver<number> {
  const observer = new QueryObserver<number>(queries, {
    queryKey: ["get", key],
    queryFn: () => {
      asked += 1;
      const then = state;
      return new Promise((resolve) => void setTimeout(() => resolve(then), ANSWER_MS));
    },
    staleTime: Infinity,
  });
  observer.subscribe(() => undefined);
  return observer;
}

beforeEach(() => {
  vi.useFakeTimers();
  queries = new QueryClient();
  [state, asked] = [0, 0];
});

afterEach(() => {
  queries.clear();
  vi.useRealTimers();
});

it("ends, however often changes are told", async () => {
  const shown = show("/task-logs");
  await vi.advanceTimersByTimeAsync(ANSWER_MS);
  for (let told = 1; told <= 20; told++) {
    state = told;
    void renew(queries);
    void renew(queries);
    await vi.advanceTimersByTimeAsync(500);
  }
  // Ten seconds are six answers, each of what was so when it was asked for.
  expect(shown.getCurrentResult().data).toBeGreaterThanOrEqual(15);
  await vi.advanceTimersByTimeAsync(2 * ANSWER_MS);
  expect(shown.getCurrentResult().data).toBe(20);
  expect(asked).toBeLessThanOrEqual(9);
});

it("misses no change that is told while an older answer is on its way", async () => {
  const shown = show("/tasks");
  state = 1;
  await vi.advanceTimersByTimeAsync(10);
  void renew(queries, { predicate: ({ queryKey }) => queryKey[1] === "/tasks" });
  await vi.advanceTimersByTimeAsync(3 * ANSWER_MS);
  expect([shown.getCurrentResult().data, asked]).toEqual([1, 2]);
});

it("reads again what could not be read", async () => {
  let fails = true;
  const observer = new QueryObserver<string>(queries, {
    queryKey: ["get", "/nodes"],
    queryFn: () => new Promise((resolve, reject) => void setTimeout(() => (fails ? reject(new Error("away")) : resolve("here")), ANSWER_MS)),
    retry: false,
  });
  observer.subscribe(() => undefined);
  await vi.advanceTimersByTimeAsync(10);
  const again = renew(queries);
  await vi.advanceTimersByTimeAsync(ANSWER_MS);
  fails = false;
  await vi.advanceTimersByTimeAsync(ANSWER_MS);
  await again;
  expect(observer.getCurrentResult().data).toBe("here");
});

it("does not delay users for longer than they would wait", async () => {
  show("/tasks");
  await vi.advanceTimersByTimeAsync(ANSWER_MS);
  let isDone = false;
  void renewed(queries).then(() => (isDone = true));
  await vi.advanceTimersByTimeAsync(ANSWER_MS - 1);
  expect(isDone).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(isDone).toBe(true);

  new QueryObserver(queries, { queryKey: ["never"], queryFn: () => new Promise(() => undefined) }).subscribe(() => undefined);
  isDone = false;
  void renewed(queries).then(() => (isDone = true));
  await vi.advanceTimersByTimeAsync(2_000);
  expect(isDone).toBe(true);
});
