/** What differs between two versions of a thing, field by field. */
import type { Schema } from "../api/client";

/** A field that differs; absent values are null, as the API says it. */
export type Change = Schema<"FieldChange">;

/** The same text for the same value, however its objects are ordered; what is absent is null. */
function canonical(value: unknown): string {
  return JSON.stringify(value ?? null, (_, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

/** Whether two values say the same. */
export function isSame(one: unknown, other: unknown): boolean {
  return canonical(one) === canonical(other);
}

/**
 * Fields whose values differ: in the order of `order`, others after those, by name. A field that one side does not
 * have counts as null there.
 */
export function diff(before: object, after: object, order: readonly string[] = []): Change[] {
  const [was, is] = [new Map<string, unknown>(Object.entries(before)), new Map<string, unknown>(Object.entries(after))];
  const place = new Map(order.map((name, index) => [name, index]));
  const placeOf = (name: string) => place.get(name) ?? order.length;
  return [...new Set([...was.keys(), ...is.keys()])]
    .filter((field) => !isSame(was.get(field), is.get(field)))
    .sort((a, b) => placeOf(a) - placeOf(b) || a.localeCompare(b))
    .map((field) => ({ field, before: was.get(field) ?? null, after: is.get(field) ?? null }));
}

/** A line of a text in two versions. */
export interface Line {
  is: "same" | "removed" | "added";
  text: string;
}

/** Texts with more lines than this are not compared line by line: that takes as long as their product. */
export const MAX_LINES = 600;

/** The lines of two texts, those in common once; a removed line stands before what was added in its place. */
export function lines(before: string, after: string): Line[] {
  const [was, is] = [before.split("\n"), after.split("\n")];
  if (was.length > MAX_LINES || is.length > MAX_LINES) {
    return [...was.map((text): Line => ({ is: "removed", text })), ...is.map((text): Line => ({ is: "added", text }))];
  }
  // common[i][j]: how many lines the rests from i and j have in common, at most.
  const common = Array.from({ length: was.length + 1 }, () => new Array<number>(is.length + 1).fill(0));
  const at = (i: number, j: number) => common[i]?.[j] ?? 0;
  for (let i = was.length - 1; i >= 0; i -= 1) {
    for (let j = is.length - 1; j >= 0; j -= 1) {
      const row = common[i];
      if (row !== undefined) row[j] = was[i] === is[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const shown: Line[] = [];
  let [i, j] = [0, 0];
  while (i < was.length || j < is.length) {
    const [old, now] = [was[i], is[j]];
    if (old !== undefined && old === now) {
      shown.push({ is: "same", text: old });
      i += 1;
      j += 1;
    } else if (old !== undefined && (now === undefined || at(i + 1, j) >= at(i, j + 1))) {
      shown.push({ is: "removed", text: old });
      i += 1;
    } else {
      shown.push({ is: "added", text: now ?? "" });
      j += 1;
    }
  }
  return shown;
}
