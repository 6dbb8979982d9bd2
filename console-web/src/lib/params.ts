/** Parameters are text. Many are JSON, and a typing error in it is found by the handler, at night. */

/** empty; json: can be read as an object or a list; broken: looks like one and is none; text: anything else. */
export type ParamsKind = "empty" | "json" | "broken" | "text";

export function kindOf(text: string): ParamsKind {
  const trimmed = text.trim();
  if (trimmed === "") return "empty";
  if (!/^[[{]/.test(trimmed)) return "text";
  try {
    JSON.parse(trimmed);
    return "json";
  } catch {
    return "broken";
  }
}

// Numbers that JavaScript would write otherwise (large ids, 1.0) must not change by being laid out.
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const numbersOf = (text: string) => (text.replace(/"(?:[^"\\]|\\.)*"/g, '""').match(NUMBER) ?? []).join(" ");

/** The same JSON, laid out for people; `undefined` for what is none, or cannot be laid out without changing it. */
export function pretty(text: string): string | undefined {
  if (kindOf(text) !== "json") return undefined;
  const laidOut = JSON.stringify(JSON.parse(text), null, 2);
  return numbersOf(laidOut) === numbersOf(text) ? laidOut : undefined;
}
