import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, renderHook } from "@testing-library/react";
import { App } from "antd";
import type { ReactNode } from "react";
import { expect, it } from "vitest";
import { useAction } from "../src/parts/useAction";

function Around({ children }: { children: ReactNode }) {
  return (
    <QueryClientProvider client={new QueryClient()}>
      <App>{children}</App>
    </QueryClientProvider>
  );
}

it("does nothing a second time while it goes on, and the next time again", async () => {
  const { result } = renderHook(() => useAction(), { wrapper: Around });
  let calls = 0;
  let end = () => {};
  const call = () => {
    calls += 1;
    return new Promise<void>((resolve) => {
      end = resolve;
    });
  };
  let clicks: Promise<boolean>[] = [];
  // Both before the button can be drawn as busy.
  act(() => {
    clicks = [result.current.run(call), result.current.run(call)];
  });
  await act(async () => {
    end();
    await Promise.all(clicks);
  });
  expect([calls, await clicks[0], await clicks[1]]).toEqual([1, true, false]);
  await act(async () => {
    const again = result.current.run(call);
    end();
    await again;
  });
  expect(calls).toBe(2);
});
