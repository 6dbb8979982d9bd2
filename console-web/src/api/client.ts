/** The management API as a typed client, made of the project's OpenAPI document (`npm run generate`). */
import createFetchClient, { type Middleware } from "openapi-fetch";
import createQueryClient from "openapi-react-query";
import type { components, operations, paths } from "./schema";

/** A schema of the document. */
export type Schema<Name extends keyof components["schemas"]> = components["schemas"][Name];

/** What an operation can be asked in its address. */
export type QueryOf<Operation extends keyof operations> = NonNullable<operations[Operation]["parameters"]["query"]>;

/** One line of what a form was refused for; the console's own have words and no code. */
export type FieldError = Pick<Schema<"FieldError">, "field" | "message"> & Partial<Schema<"FieldError">>;

/** The node refused, and says why. */
export class Problem extends Error {
  constructor(
    /** HTTP status. */
    readonly status: number,
    /** Why (docs/errors.md); empty where something else than a node has answered. */
    readonly code: string,
    /** For people, in English: names the field, the permission or the state that stood in the way. */
    readonly detail: string,
    /** What is wrong with which field. */
    readonly errors: readonly FieldError[] = [],
    /** What the code's words are filled with. */
    readonly params: Readonly<Record<string, unknown>> = {},
    /** Seconds after which it may be tried again; from `Retry-After`. */
    readonly retryAfter?: number,
  ) {
    super(detail);
    this.name = "Problem";
  }
}

/** No answer came: the node, or what lies before it, is not there. */
export class Unreachable extends Error {
  constructor(
    cause: unknown,
    /** Whether it may have been done all the same: it was a change, and nobody repeats it. */
    readonly mayBeDone: boolean,
  ) {
    super("the node does not answer", { cause });
    this.name = "Unreachable";
  }
}

const CHANGES = new Set(["POST", "PUT", "PATCH", "DELETE"]);

/** Questions that are asked with a body. */
const ASKS = /\/(login|preview)$/;

/** The session's token against forged requests; `GET /session` and a login tell it. */
let csrf = "";

/** From now on, changes carry this token. */
export function setToken(token: string | null | undefined): void {
  csrf = token ?? "";
}

/** What is called when the node says that nobody is signed in any more. */
let signedOut: () => void = () => undefined;

/** Sets what is called when a session has ended. */
export function onSignedOut(listener: () => void): void {
  signedOut = listener;
}

async function problemOf(answer: Response): Promise<Problem> {
  const after = Number(answer.headers.get("retry-after") ?? Number.NaN);
  const retryAfter = Number.isFinite(after) ? after : undefined;
  try {
    const body = (await answer.json()) as Partial<Schema<"Problem">>;
    const detail = body.detail ?? body.title ?? answer.statusText;
    return new Problem(answer.status, body.code ?? "", detail, body.errors ?? [], body.params ?? {}, retryAfter);
  } catch {
    // A proxy's page, not the node's answer.
    return new Problem(answer.status, "", answer.statusText, [], {}, retryAfter);
  }
}

const rules: Middleware = {
  onRequest({ request }) {
    if (CHANGES.has(request.method)) request.headers.set("x-csrf-token", csrf);
    return request;
  },
  async onResponse({ request, response }) {
    if (response.ok) return undefined;
    const problem = await problemOf(response);
    // Those two ask who one is; to be nobody is an answer there.
    const { pathname } = new URL(request.url);
    const asksWho = pathname === "/api/v1/session" || pathname === "/api/v1/login";
    if (problem.status === 401 && !asksWho) signedOut();
    throw problem;
  },
  onError({ request, error }) {
    if (error instanceof Problem) return error;
    return new Unreachable(error, CHANGES.has(request.method) && !ASKS.test(new URL(request.url).pathname));
  },
};

/** Calls that throw a [`Problem`] or [`Unreachable`]. */
export const client = createFetchClient<paths>({
  baseUrl: new URL("/api/v1", window.location.origin).href,
  // Looked up at each call, so that tests can stand in for the network.
  fetch: (request) => globalThis.fetch(request),
});
client.use(rules);

const hooks = createQueryClient(client);

const useInfiniteQuery: typeof hooks.useInfiniteQuery = (method, path, init, options, queries) => {
  // Pages are kept in another shape than one answer to the same question: they must not be taken for each other.
  const apart = { ...options, queryKey: [method, path, init, "pages"] };
  return hooks.useInfiniteQuery(method, path, init, apart, queries);
};

/** The same calls as hooks: `$api.useQuery("get", "/tasks/{id}", ...)`. */
export const $api = { ...hooks, useInfiniteQuery };

/** The header that makes a change fail with 409 when another change came first. */
export function ifMatch(revision: number): { "If-Match": string } {
  return { "If-Match": `"${revision}"` };
}
