import { act, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { clusterNow, heardClusterTime, useNow } from "../src/lib/now";

beforeEach(() => {
  vi.useFakeTimers({ now: 100_000 });
  heardClusterTime(100_000);
});

afterEach(() => {
  vi.useRealTimers();
});

function Clock() {
  return <output>{useNow(1_000)}</output>;
}

it("goes on, however often it is drawn again in between", () => {
  const { rerender } = render(<Clock />);
  for (let step = 0; step < 30; step++) {
    act(() => void vi.advanceTimersByTime(100));
    rerender(<Clock />);
  }
  expect(Number(screen.getByRole("status").textContent)).toBeGreaterThanOrEqual(102_000);
});

it("believes the word that was shortest on its way, and a clock that was set", () => {
  for (const late of [40, 900, 10, 300]) heardClusterTime(200_000 - late);
  expect(clusterNow()).toBe(199_990);
  // It drifts: words older than a minute do not count.
  for (let word = 0; word < 6; word++) heardClusterTime(199_900);
  expect(clusterNow()).toBe(199_900);
  heardClusterTime(150_000);
  expect(clusterNow()).toBe(150_000);
  heardClusterTime(151_000);
  expect(clusterNow()).toBe(151_000);
});

it("goes by the cluster's clock", () => {
  heardClusterTime(500_000);
  render(<Clock />);
  act(() => void vi.advanceTimersByTime(1_000));
  expect(Number(screen.getByRole("status").textContent)).toBe(501_000);
});
