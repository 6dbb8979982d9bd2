import { expect, it } from "vitest";
import { backOff, PAUSE_MAX_MS, PAUSE_MIN_MS } from "../src/lib/backOff";
import { pathsOf } from "../src/lib/changedPaths";

it("waits longer with each failure, within bounds, and never for all pages the same", () => {
  for (let failures = 0; failures < 100; failures++) {
    const [least, most] = [backOff(failures, 0), backOff(failures, 1)];
    expect(least).toBeGreaterThanOrEqual(PAUSE_MIN_MS / 2);
    expect(most).toBeLessThanOrEqual(PAUSE_MAX_MS);
    expect(most).toBe(least * 2);
    expect(most).toBeGreaterThanOrEqual(backOff(failures - 1 < 0 ? 0 : failures - 1, 1));
  }
  expect(backOff(100, 1)).toBe(PAUSE_MAX_MS);
});

it("makes old what a kind of change concerns, and nothing for a kind of tomorrow", () => {
  expect(pathsOf(["tasks"])).toContain("/tasks");
  expect(pathsOf(["tasks"])).toContain("/tenants/{tenant}/origins");
  expect(pathsOf(["tasks", "roles"])).toContain("/session");
  expect(pathsOf(["bells"])).toEqual([]);
});
