/** What an entry of the audit changed, field by field. */

/** One field that was changed. */
export interface FieldChange {
  /** Path: `policies.max_retries`. */
  field: string;
  kind: "added" | "removed" | "changed";
  /** As text; absent: it was not there. */
  before?: string;
  after?: string;
  /** Of a list of plain values: what came and what went. */
  came?: string[];
  went?: string[];
}

type Json = string | number | boolean | null | Json[] | { [field: string]: Json };

function isObject(value: Json | undefined): value is { [field: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parse(text: string | null | undefined): Json | undefined {
  if (text === null || text === undefined || text === "") return undefined;
  try {
    return JSON.parse(text) as Json;
  } catch {
    // Not JSON: the text itself.
    return text;
  }
}

/** Fields by their path; lists stay whole. */
function flatten(value: Json | undefined, path = ""): Map<string, Json> {
  if (value === undefined) return new Map();
  if (!isObject(value) || (path !== "" && Object.keys(value).length === 0)) return new Map([[path, value]]);
  return new Map(Object.entries(value).flatMap(([name, inner]) => [...flatten(inner, path === "" ? name : `${path}.${name}`)]));
}

/** A value as people read it: texts without quotes, all else as JSON. */
function written(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function plainList(value: Json | undefined): string[] | undefined {
  if (!Array.isArray(value) || value.some((member) => typeof member === "object" && member !== null)) return undefined;
  return value.map(written);
}

function changeOf(field: string, before: Json | undefined, after: Json | undefined): FieldChange | undefined {
  if (before === undefined && after === undefined) return undefined;
  if (before === undefined) return { field, kind: "added", after: written(after ?? null) };
  if (after === undefined) return { field, kind: "removed", before: written(before) };
  if (JSON.stringify(before) === JSON.stringify(after)) return undefined;
  const change: FieldChange = { field, kind: "changed", before: written(before), after: written(after) };
  const [old, young] = [plainList(before), plainList(after)];
  if (old === undefined || young === undefined) return change;
  return { ...change, came: young.filter((member) => !old.includes(member)), went: old.filter((member) => !young.includes(member)) };
}

/** The fields that differ between two JSON texts, in the order of the first and then of the second. */
export function auditDiff(before: string | null | undefined, after: string | null | undefined): FieldChange[] {
  const [old, young] = [flatten(parse(before)), flatten(parse(after))];
  const fields = new Set([...old.keys(), ...young.keys()]);
  return [...fields].flatMap((field) => changeOf(field, old.get(field), young.get(field)) ?? []);
}

const NOTHING = new Set(["", "0", "[]", "{}", "null", "false"]);

/** Whether a field says nothing beyond "not set": of what was created or deleted, these are shown on demand only. */
export function saysNothing(change: FieldChange): boolean {
  return change.kind !== "changed" && NOTHING.has(change.before ?? change.after ?? "");
}

/** JSON with line breaks; what is not JSON stays as it is. */
export function pretty(text: string): string {
  const value = parse(text);
  return typeof value === "object" && value !== null ? JSON.stringify(value, null, 2) : text;
}
