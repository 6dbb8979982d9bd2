/** Small parts that keys and tokens of an app share. */
import { useTranslation } from "react-i18next";
import type { Schema } from "../../api/client";
import type { Tone } from "../../lib/states";
import { Moment } from "../../parts/Moment";
import { Word } from "../../parts/Tags";

const TONES: Record<string, Tone> = { valid: "good", expired: "idle", revoked: "bad" };

/** Uses of a key are no changes: they are asked for, ms. */
export const USES_MS = 30_000;

export function KeyState({ state }: { state: string }) {
  const { t: own } = useTranslation("executors");
  const isKnown = state === "valid" || state === "expired" || state === "revoked";
  return <Word tone={TONES[state] ?? "idle"}>{isKnown ? own(`keys.states.${state}`) : state}</Word>;
}

/** When it stopped or will stop working. */
export function KeyEnds({ of }: { of: Schema<"Key"> }) {
  const { t: own } = useTranslation("executors");
  return <Moment at={of.revoked_at ?? of.expires_at} exactness="minute" otherwise={own("keys.endless")} />;
}
