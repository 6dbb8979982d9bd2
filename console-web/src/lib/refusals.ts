/** Refusals about people that have plainer words than the node's. */
import type { ProblemParams } from "../api/codes";
import { Problem } from "../api/client";

/** Key of the plain words, and what goes into them. */
export interface Refusal {
  key: "beyond_grant" | "beyond_user" | "managed_elsewhere" | "last_admin" | "single_sign_on" | "tenant_in_use" | "role_granted" | "built_in" | "name_taken";
  values: { what: string };
}

/** By code: the key, and the parameter that goes into the words. */
const KNOWN: { readonly [Code in keyof ProblemParams]?: readonly [Refusal["key"], (keyof ProblemParams[Code])?] } = {
  beyond_own: ["beyond_grant", "permissions"],
  user_above_caller: ["beyond_user"],
  managed_elsewhere: ["managed_elsewhere"],
  last_admin: ["last_admin"],
  single_sign_on: ["single_sign_on"],
  still_has: ["tenant_in_use", "what"],
  role_granted: ["role_granted", "users"],
  built_in: ["built_in"],
  name_taken: ["name_taken"],
};

/** The refusal, if it is one of those; anything else is shown as it is. */
export function refusalOf(error: unknown): Refusal | undefined {
  if (!(error instanceof Problem)) return undefined;
  const [key, param] = (KNOWN as Record<string, readonly [Refusal["key"], string?] | undefined>)[error.code] ?? [];
  return key === undefined ? undefined : { key, values: { what: param === undefined ? "" : String(error.params[param]) } };
}
