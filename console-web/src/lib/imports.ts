/** What was imported from other schedulers: by source and app, and how to go on (docs/migrating-from-xxl-job.md). */
import type { Schema } from "../api/client";
import type { Tone } from "./states";

/** What an import needs to know of a task. */
type Known = Pick<Schema<"Task">, "id" | "name" | "app" | "state" | "valid_from">;

/** An imported task. */
export interface Imported {
  /** The task's id. */
  id: string;
  /** Name of the source that it comes from. */
  source: string;
  /** What it is called there. */
  there: string;
  /** Its number for executors and scripts of xxl-job, if it has one. */
  number: number | undefined;
  /** Absent where it could not be read. */
  task: Known | undefined;
}

/** `old#7` is the task 7 of the source `old`; no source has that sign in its name. */
export function readOrigin(origin: string): { source: string; there: string } {
  const at = origin.indexOf("#");
  return at < 0 ? { source: origin, there: "" } : { source: origin.slice(0, at), there: origin.slice(at + 1) };
}

/** The cursor after which a list by ids goes on with this one. */
export function before(id: string): string {
  return (BigInt(id) - 1n).toString();
}

/** Whether one id comes before another: they are longer than a number holds exactly. */
export function isBefore(id: string, other: string): boolean {
  return BigInt(id) < BigInt(other);
}

/** Each imported task with what is known of it. */
export function joined(origins: readonly Schema<"TaskOrigin">[], tasks: readonly Known[]): Imported[] {
  const known = new Map(tasks.map((task) => [task.id, task]));
  return origins.map(({ task: id, origin, number }) => ({ id, ...readOrigin(origin), number: number ?? undefined, task: known.get(id) }));
}

/** Where an imported task runs, as far as this side can tell. */
export type Side = "here" | "paused" | "back" | "waiting";

/**
 * here: started; paused: taken over, and paused by a person or after failures. Both others are stopped here. A switch notes the first
 * fire (`valid_from`), and giving a job back leaves it: back. waiting: nothing was switched yet.
 */
export function sideOf({ state, valid_from }: Pick<Known, "state" | "valid_from">): Side {
  if (state === "started") return "here";
  if (state === "paused") return "paused";
  return valid_from > 0 ? "back" : "waiting";
}

export const SIDE_TONES: Record<Side, Tone> = { here: "good", paused: "odd", back: "open", waiting: "idle" };

/** How far a group has come. */
export type Progress = "here" | "partly" | "back" | "waiting";

export const PROGRESS_TONES: Record<Progress, Tone> = { here: "good", partly: "odd", back: "open", waiting: "idle" };

/** The imported tasks of one app: what was a group there. */
export interface Group {
  source: string;
  app: string;
  counts: Record<Side, number>;
  progress: Progress;
}

/** Some may stay stopped for ever, as they were there: they do not make a group half switched. Given back is another matter. */
function progressOf({ here, paused, back }: Record<Side, number>): Progress {
  if (here + paused === 0) return back > 0 ? "back" : "waiting";
  return back > 0 ? "partly" : "here";
}

/** By source and app, in the order of their names. */
export function groupsOf(all: readonly Imported[]): Group[] {
  const groups = new Map<string, Group>();
  for (const { source, task } of all) {
    if (task === undefined) continue;
    const key = `${source}#${task.app}`;
    const group = groups.get(key) ?? { source, app: task.app, counts: { here: 0, paused: 0, back: 0, waiting: 0 }, progress: "waiting" };
    group.counts[sideOf(task)] += 1;
    groups.set(key, group);
  }
  return [...groups.values()]
    .map((group) => ({ ...group, progress: progressOf(group.counts) }))
    .sort((a, b) => a.source.localeCompare(b.source) || a.app.localeCompare(b.app));
}

/** What can be imported. */
export const KINDS = ["xxl-job", "horace"] as const;
export type Kind = (typeof KINDS)[number];

/** The name that a source has unless another is given is that of its kind; the node keeps the name alone. */
export function kindOf(source: string | undefined): Kind {
  return source === "horace" ? "horace" : "xxl-job";
}

/** What a person types to go on. */
export interface Commands {
  look: string;
  take: string;
  /** A horace cron-job has no switch. */
  move?: string;
  back?: string;
}

interface About {
  /** Where a node is. */
  url: string;
  tenant: string;
  kind: Kind;
  /** Absent: nothing was imported yet. */
  source: string | undefined;
  /** Only this group. */
  app: string | undefined;
}

/** Names of tenants, apps and sources are made of letters, digits and `. _ -`: no shell reads them in another way. */
export function commandsOf({ url, tenant, kind, source, app }: About): Commands {
  const database = kind === "horace" ? "cron_job" : "xxl_job";
  const all = (verb: string, user: string) => {
    const words = [`carillon --url ${url} import ${verb} --from mysql://${user}@HOST:3306/${database}`, `--time-zone ZONE --tenant ${tenant}`];
    // These are the names that sources get by themselves.
    if (source !== undefined && !KINDS.some((name) => name === source)) words.push(`--source ${source}`);
    if (app !== undefined && kind === "xxl-job") words.push(`--group ${app}`);
    return words.join(" ");
  };
  const take = all(kind, "reader");
  const commands = { look: `${take} --dry-run`, take };
  return kind === "horace" ? commands : { ...commands, move: all("switch", "switcher"), back: all("undo", "switcher") };
}
