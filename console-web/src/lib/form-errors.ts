/** What the node refused of a form, at the fields of the form. */
import { Problem } from "../api/client";
import { fieldWords } from "../i18n/fieldWords";

/** Errors of one field. */
export interface OfField {
  name: string;
  errors: string[];
}

/**
 * Sorts what was refused by the form's fields; `workdays[3]` is of the field `workdays`.
 * `rest` is true where something is left that no field shows: it must be shown elsewhere.
 */
export function errorsOf(error: unknown, fields: readonly string[]): { shown: OfField[]; rest: boolean } {
  if (!(error instanceof Problem)) return { shown: [], rest: true };
  const shown = new Map<string, string[]>();
  let rest = error.errors.length === 0;
  for (const refused of error.errors) {
    const name = refused.field.split(/[.[]/)[0] ?? refused.field;
    if (fields.includes(name)) shown.set(name, [...(shown.get(name) ?? []), fieldWords(refused)]);
    else rest = true;
  }
  return { shown: [...shown].map(([name, errors]) => ({ name, errors })), rest };
}

/** Whether another change came first. */
export function isStale(error: unknown): boolean {
  return error instanceof Problem && error.status === 409;
}
