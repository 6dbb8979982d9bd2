/** A task's definition as the console handles it: its fields, their defaults, and what they may be. */
import type { Schema } from "../api/client";

/** All fields that one can write; neither the task's state nor its counters. */
export type Definition = Schema<"TaskSpec">;

/** Name of one of them. */
export type Field = keyof Definition;

/** What the fields with a choice may be; the first is the default. */
export const CHOICES = {
  schedule: ["none", "cron", "fixed_rate", "fixed_delay", "once"],
  dst_gap: ["auto", "skip", "after"],
  dst_overlap: ["auto", "first", "second", "both"],
  calendar_rule: ["skip", "next", "previous"],
  misfire_strategy: ["fire_once", "skip", "fire_all"],
  expired_strategy: ["execute", "discard"],
  maintenance: ["obey", "ignore"],
  routing: [
    "random", "round", "first", "last", "consistent_hash", "least_frequently_used", "least_recently_used", "failover",
    "busyover", "least_loaded", "sharding",
  ],
  block_strategy: ["concurrent", "serial", "discard_later", "cover_early"],
  block_scope: ["executor", "app"],
  failure_strategy: ["retry", "discard"],
  retry_backoff: ["fixed", "exponential"],
  retry_on: ["failed", "timed_out", "lost", "not_sent"],
  delivery: ["at_least_once", "at_most_once"],
  parent_rule: ["all", "any"],
} as const satisfies { [Name in Field]?: readonly (Definition[Name] | (Definition[Name] extends readonly (infer Item)[] ? Item : never))[] };

/** A field with a choice. */
export type ChoiceField = keyof typeof CHOICES;

/** What the end of a parent may be asked to be; the first is the default. */
export const OUTCOMES = ["success", "failure", "always"] as const satisfies readonly Schema<"ParentOutcome">[];

/** A new task, before anything is said about it (docs/policies.md). */
export const DEFAULTS: Definition = {
  name: "", handler: "", description: "", params: "",
  schedule: "none", cron: "", time_zone: "UTC", interval_ms: 0, fire_at: 0, valid_from: 0, valid_until: 0, max_fires: 0,
  dst_gap: "auto", dst_overlap: "auto", calendar: "", calendar_rule: "skip", spread_ms: 0, jitter_ms: 0,
  misfire_strategy: "fire_once", misfire_max: 10, misfire_max_late_ms: 0,
  expired_strategy: "execute", expire_after_ms: 0, maintenance: "obey", pause_after_failures: 0,
  routing: "random", tags: [], tags_any: [], tags_none: [],
  block_strategy: "concurrent", block_scope: "executor", max_concurrent: 0, priority: 5,
  failure_strategy: "retry", max_retries: 5, retry_interval_ms: 10_000, retry_backoff: "fixed", retry_max_interval_ms: 600_000,
  retry_jitter_percent: 0, retry_on: ["failed", "timed_out", "lost", "not_sent"], retry_elsewhere: false,
  timeout_ms: 0, wait_timeout_ms: 0, delivery: "at_least_once",
  parents: [], parent_rule: "all", parent_output: false,
};

/** Names of all fields, in the order in which people read them. */
export const FIELDS = Object.keys(DEFAULTS).filter(isField);

export function isField(name: string): name is Field {
  return Object.hasOwn(DEFAULTS, name);
}

function isParent(value: unknown): value is Schema<"ParentLink"> {
  if (typeof value !== "object" || value === null || !("task" in value) || typeof value.task !== "string") return false;
  return !("on" in value) || OUTCOMES.some((outcome) => outcome === value.on);
}

function isChoice(name: Field): name is ChoiceField {
  return Object.hasOwn(CHOICES, name);
}

/** Whether a value read from JSON may stand in that field. */
function fits(name: Field, value: unknown): boolean {
  const allowed: readonly unknown[] | undefined = isChoice(name) ? CHOICES[name] : undefined;
  if (name === "parents") return Array.isArray(value) && value.every(isParent);
  if (Array.isArray(DEFAULTS[name])) {
    return Array.isArray(value) && value.every((item) => typeof item === "string" && (allowed === undefined || allowed.includes(item)));
  }
  return allowed === undefined ? typeof value === typeof DEFAULTS[name] : allowed.includes(value);
}

/** Sets a field, unless the value may not stand there. */
function put(to: Definition, name: Field, value: unknown): boolean {
  if (!fits(name, value)) return false;
  Object.assign(to, { [name]: value });
  return true;
}

/** A task's definition, without what else is known of the task. */
export function definitionOf(task: Definition): Definition {
  const definition = { ...DEFAULTS };
  for (const name of FIELDS) put(definition, name, task[name]);
  return definition;
}

/** An object that somebody wrote as JSON; `undefined` when it is none. */
export function readObject(json: string | null | undefined): Record<string, unknown> | undefined {
  if (json === null || json === undefined) return undefined;
  try {
    const read: unknown = JSON.parse(json);
    return typeof read === "object" && read !== null && !Array.isArray(read) ? (read as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The definition that an entry of the audit kept; `undefined` when it kept none, or one that this console does not
 * understand whole: what it cannot show it does not restore either.
 */
export function readDefinition(json: string | null | undefined): Definition | undefined {
  const read = readObject(json);
  if (read === undefined) return undefined;
  const definition = { ...DEFAULTS };
  return FIELDS.every((name) => put(definition, name, read[name])) ? definition : undefined;
}

/** Spans, in ms. */
export function isSpan(name: string): boolean {
  return name.endsWith("_ms");
}

/** Instants, in epoch ms. */
export function isInstant(name: string): boolean {
  return name === "fire_at" || name === "valid_from" || name === "valid_until";
}
