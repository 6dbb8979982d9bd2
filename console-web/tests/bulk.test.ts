import { expect, it } from "vitest";
import { AT_ONCE, forAll } from "../src/lib/bulk";

it("does all, a few at once, and tells each outcome in order", async () => {
  let [now, most] = [0, 0];
  const seen: number[] = [];
  const outcomes = await forAll(
    Array.from({ length: 11 }, (_, index) => index),
    async (item) => {
      now += 1;
      most = Math.max(most, now);
      await new Promise((resolve) => setTimeout(resolve, (11 - item) % 3));
      now -= 1;
      if (item === 5) throw new Error("five");
    },
    (behind) => seen.push(behind),
  );
  expect(most).toBe(AT_ONCE);
  expect(outcomes.map(({ item }) => item)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  expect(outcomes.filter(({ isDone }) => !isDone)).toEqual([{ item: 5, isDone: false, error: new Error("five") }]);
  expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
});

it("does nothing for nobody", async () => {
  expect(await forAll([], () => Promise.reject(new Error("asked")))).toEqual([]);
});
