/** What the node refuses about people, recognised by its words, so that it can be said in the viewer's language. */
import { Problem } from "../api/client";

/** Key of the plain words, and what goes into them. */
export interface Refusal {
  key: "beyond_grant" | "beyond_user" | "managed_elsewhere" | "last_admin" | "single_sign_on" | "tenant_in_use" | "role_granted" | "built_in" | "name_taken";
  values: { what: string };
}

export const KNOWN: readonly [pattern: RegExp, key: Refusal["key"]][] = [
  [/you do not hold (.+) there yourself/, "beyond_grant"],
  [/the user may do what you may not/, "beyond_user"],
  [/the account is managed by another tenant/, "managed_elsewhere"],
  [/nobody would be left who is platform admin/, "last_admin"],
  [/signs in by single sign-on; a password/, "single_sign_on"],
  [/it still has (apps|users|roles|grants)/, "tenant_in_use"],
  [/it is granted to (.+); take it back first/, "role_granted"],
  [/built-in roles cannot be changed/, "built_in"],
  [/the name is already taken/, "name_taken"],
];

/** The refusal, if it is one of those; anything else is shown as the node says it. */
export function refusalOf(error: unknown): Refusal | undefined {
  if (!(error instanceof Problem) || (error.status !== 403 && error.status !== 409)) return undefined;
  for (const [pattern, key] of KNOWN) {
    const found = pattern.exec(error.detail);
    if (found !== null) return { key, values: { what: found[1] ?? "" } };
  }
  return undefined;
}
