/** Executors of xxl-job: what the console knows of the libraries that they are made with, and of the numbers that they know runs by. */
import type { Schema } from "../api/client";

/** Libraries as far as what differs between them counts; `other` is one that nothing is known of. */
export const LIBRARIES = ["java", "python", "go", "node", "other"] as const;
export type Library = (typeof LIBRARIES)[number];

const AGENTS: readonly (readonly [beginning: string, library: Library])[] = [
  ["Java/", "java"],
  ["Python/", "python"],
  ["Go-http-client/", "go"],
  ["axios/", "node"],
];

/** The library of an executor, by what it calls with: none of them names itself. */
export function libraryOf(agent: string): Library {
  return AGENTS.find(([beginning]) => agent.startsWith(beginning))?.[1] ?? "other";
}

type Executor = Pick<Schema<"Executor">, "plain" | "version">;

/** The libraries of the executors that speak xxl-job's protocol, each once, in the order of `LIBRARIES`. */
export function librariesOf(executors: readonly Executor[]): Library[] {
  const there = new Set(executors.filter(({ plain }) => plain).map(({ version }) => libraryOf(version)));
  return LIBRARIES.filter((library) => there.has(library));
}

/** Whether executors of xxl-job can come in: whether there is a token that works. */
export function isDoorOpen(keys: readonly Pick<Schema<"Key">, "kind" | "state">[]): boolean {
  return keys.some(({ kind, state }) => kind === "token" && state === "valid");
}

/** Where the interface of xxl-job's admin is at a node. */
const CONTEXT = "/xxl-job-admin";

/** What an executor reads, in its application.properties. */
export function propertiesOf(nodes: readonly string[], app: string, token: string): string {
  const addresses = nodes.map((node) => node.replace(/\/+$/, "") + CONTEXT).join(",");
  return [`xxl.job.admin.addresses=${addresses}`, `xxl.job.accessToken=${token}`, `xxl.job.executor.appname=${app}`].join("\n");
}

/** Bits of the number of a run on xxl-job's wire (docs/decisions/0069-numbers-of-runs.md). */
const NUMBER_BITS = 53;

/** `logId` of a run's first attempt, as its executor knows it: the lower bits of the log's id. Those of later attempts are not told. */
export function firstNumber(log: string): string | undefined {
  if (!/^\d{1,19}$/.test(log)) return undefined;
  return BigInt.asUintN(NUMBER_BITS, BigInt(log)).toString();
}

/** What of a task comes out otherwise at executors of xxl-job than at others. */
export type TaskNote = "serial" | "seconds" | "refused" | "covered";

type Told = Pick<Schema<"Task">, "block_strategy" | "block_scope" | "timeout_ms">;

/** What is worth saying of a task at executors of these libraries. */
export function notesOf(task: Told, libraries: readonly Library[]): TaskNote[] {
  const notes: TaskNote[] = [];
  // Go's and Node's know nothing of a run that waits.
  const oneAtATime = libraries.some((library) => library === "go" || library === "node") && task.block_scope !== "app";
  if (task.block_strategy === "concurrent") notes.push("serial");
  if (oneAtATime && (task.block_strategy === "serial" || task.block_strategy === "concurrent")) notes.push("refused");
  if (oneAtATime && task.block_strategy === "cover_early") notes.push("covered");
  if (task.timeout_ms % 1_000 !== 0) notes.push("seconds");
  return notes;
}
