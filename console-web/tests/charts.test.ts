import { expect, it } from "vitest";
import { timeSteps } from "../src/parts/Chart";

const MINUTE = 60_000;

it("marks the time axis no closer than the figures lie apart", () => {
  const minutes = [0, 1, 2].map((at) => at * MINUTE);
  expect(timeSteps(minutes)[0]).toBe(MINUTE);
  expect(timeSteps(minutes.map((at) => at * 5))[0]).toBe(5 * MINUTE);
  expect(timeSteps(minutes.map((at) => at * 60))[0]).toBe(60 * MINUTE);
  expect(timeSteps(minutes.map((at) => at * 1_440))[0]).toBe(1_440 * MINUTE);
});

it("marks no part of a minute, whose name would be there twice", () => {
  expect(timeSteps([0, 1_000, 2_000])[0]).toBe(MINUTE);
  expect(timeSteps([0]).at(0)).toBe(1_440 * MINUTE);
  expect(timeSteps([]).length).toBeGreaterThan(0);
});
