/** Life of an API token. */

const DAY_MS = 86_400_000;

/** Days for which a token can be made without naming an instant. */
export const EXPIRY_DAYS = [7, 30, 90, 365] as const;

/** The longest life, days: ten years. */
export const EXPIRY_DAYS_MAX = 3_650;

/** From so long before its end on, a token is void soon, ms. */
const SOON_MS = 7 * DAY_MS;

/** void: it does nothing any more; soon: it will within a week. */
export type TokenLife = "void" | "soon" | "valid";

export function lifeOf(expiresAt: number, now: number): TokenLife {
  if (expiresAt <= now) return "void";
  return expiresAt - now <= SOON_MS ? "soon" : "valid";
}

/** The instant after so many days. */
export function afterDays(days: number, now: number): number {
  return now + days * DAY_MS;
}

/** Whether a token may end then: in time to come, at most ten years away. */
export function isExpiry(at: number, now: number): boolean {
  return at > now && at <= afterDays(EXPIRY_DAYS_MAX, now);
}

/** How a program uses a token, for the node at `origin`. */
export function examples(origin: string): string {
  return [
    `curl -H "Authorization: Bearer $(cat token.txt)" ${origin}/api/v1/session`,
    `carillon --url ${origin} --token-file token.txt tasks list`,
  ].join("\n");
}
