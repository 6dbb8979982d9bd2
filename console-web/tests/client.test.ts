import { afterEach, describe, expect, it, vi } from "vitest";
import { client, onSignedOut, Problem, setToken, Unreachable } from "../src/api/client";

function answer(status: number, body: unknown, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), { status, headers: { "content-type": "application/problem+json", ...headers } });
}

function network(reply: (request: Request) => Response | Promise<Response>) {
  const seen: Request[] = [];
  vi.stubGlobal("fetch", (request: Request) => {
    seen.push(request);
    return Promise.resolve().then(() => reply(request));
  });
  return seen;
}

afterEach(() => {
  vi.unstubAllGlobals();
  setToken(null);
});

describe("the client", () => {
  it("turns a refusal into a problem with its fields", async () => {
    network(() => answer(400, { title: "Bad Request", status: 400, code: "invalid_fields", params: { fields: "cron: no" }, detail: "cron: no", errors: [{ field: "cron", message: "no" }] }));
    const failure = await client.GET("/tasks").catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(Problem);
    expect(failure).toMatchObject({ status: 400, code: "invalid_fields", params: { fields: "cron: no" }, detail: "cron: no", errors: [{ field: "cron", message: "no" }] });
  });

  it("understands a proxy's page, and when to come again", async () => {
    network(() => new Response("<html>", { status: 503, statusText: "Service Unavailable", headers: { "retry-after": "7" } }));
    const failure = await client.GET("/tasks").catch((error: unknown) => error);
    expect(failure).toMatchObject({ status: 503, detail: "Service Unavailable", retryAfter: 7 });
  });

  it("says that nobody answered", async () => {
    network(() => Promise.reject(new TypeError("Failed to fetch")));
    const call = async (ask: Promise<unknown>) => ask.catch((error: unknown) => error);
    expect(await call(client.GET("/tasks"))).toBeInstanceOf(Unreachable);
    expect(await call(client.GET("/tasks"))).toMatchObject({ mayBeDone: false });
    // Nobody knows what became of a change; who asks to come in changes nothing.
    expect(await call(client.POST("/logout"))).toMatchObject({ mayBeDone: true });
    expect(await call(client.POST("/login", { body: { name: "ann", password: "" } }))).toMatchObject({ mayBeDone: false });
  });

  it("sends the token with changes only", async () => {
    const seen = network(() => answer(200, {}));
    setToken("secret");
    await client.GET("/tasks");
    await client.POST("/logout");
    expect(seen.map((request) => request.headers.get("x-csrf-token"))).toEqual([null, "secret"]);
  });

  it("says that a session has ended, but not where it was asked for", async () => {
    const ended = vi.fn();
    onSignedOut(ended);
    network(() => answer(401, { detail: "sign in" }));
    await client.GET("/session").catch(() => undefined);
    await client.POST("/login", { body: { name: "a", password: "b" } }).catch(() => undefined);
    expect(ended).not.toHaveBeenCalled();
    await client.GET("/tasks").catch(() => undefined);
    expect(ended).toHaveBeenCalledOnce();
  });
});
