/** How the executors of an app sign. */

/** What an app can demand; empty: nothing. */
export const SIGN_METHODS = ["", "HMAC-SHA256", "MD5"] as const;
export type SignMethod = (typeof SIGN_METHODS)[number];

/** The texts' name of a method; a method that a newer node knows has none. */
export function signKey(method: string): "any" | "HMAC-SHA256" | "MD5" | undefined {
  if (method === "") return "any";
  return method === "HMAC-SHA256" || method === "MD5" ? method : undefined;
}
