/** Who is signed in: what one has seen is not the next one's. */
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { useMe } from "../src/api/session";
import { answered } from "./answered";

let status: number;

function Probe() {
  const { me, again } = useMe();
  return <button onClick={again}>{me === undefined ? "unknown" : me === null ? "nobody" : me.name}</button>;
}

const shown = () => screen.getByRole("button").textContent;

beforeEach(() => {
  status = 200;
  vi.stubGlobal("fetch", () => {
    if (status === 0) return Promise.reject(new TypeError("no network"));
    const body = status === 200 ? { name: "anna", csrf: "c", access: [] } : { status, title: "no" };
    return Promise.resolve(answered(body, status));
  });
});

afterEach(() => vi.unstubAllGlobals());

it("forgets everything when a session has ended, and does not remember it when the node is away", async () => {
  const queries = new QueryClient();
  render(
    <QueryClientProvider client={queries}>
      <Probe />
    </QueryClientProvider>,
  );
  await waitFor(() => expect(shown()).toBe("anna"));
  queries.setQueryData(["get", "/tasks"], "anna's");
  status = 401;
  screen.getByRole("button").click();
  await waitFor(() => expect(shown()).toBe("nobody"));
  expect(queries.getQueryData(["get", "/tasks"])).toBeUndefined();
  status = 0;
  screen.getByRole("button").click();
  await waitFor(() => expect(shown()).toBe("unknown"));
});
