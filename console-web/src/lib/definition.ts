/** A task's definition as the console handles it; what its fields may hold is made of the API's document (api/taskFields.ts). */
import type { Schema } from "../api/client";
import { CHOICES, DEFAULTS, OUTCOMES, UNITS } from "../api/taskFields";

export { CHOICES, DEFAULTS, OUTCOMES, RANGES } from "../api/taskFields";

/** All fields that one can write; neither the task's state nor its counters. */
export type Definition = Schema<"TaskSpec">;

/** Name of one of them. */
export type Field = keyof Definition;

/** A field with a choice. */
export type ChoiceField = keyof typeof CHOICES;

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

/** The definition with another value in a field; as it was, if the value may not stand there. */
export function withValue(definition: Definition, name: Field, value: unknown): Definition {
  const changed = { ...definition };
  put(changed, name, value);
  return changed;
}

/** A task's definition, without what else is known of the task. */
export function definitionOf(task: Definition): Definition {
  const definition = { ...DEFAULTS };
  for (const name of FIELDS) put(definition, name, task[name]);
  return definition;
}

/** An object written as JSON; `undefined` when it is not one. */
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
  return UNITS[name] === "ms";
}

/** Instants, in epoch ms. */
export function isInstant(name: string): boolean {
  return UNITS[name] === "instant";
}
