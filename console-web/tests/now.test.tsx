import { act, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { heardClusterTime, useNow } from "../src/lib/now";

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

it("goes by the cluster's clock", () => {
  heardClusterTime(500_000);
  render(<Clock />);
  act(() => void vi.advanceTimersByTime(1_000));
  expect(Number(screen.getByRole("status").textContent)).toBe(501_000);
});
