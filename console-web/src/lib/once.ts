/** A key that makes two calls one (`idempotency_key`). */

/** 128 random bits as text. `crypto.randomUUID` is missing where the console is served without TLS. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
