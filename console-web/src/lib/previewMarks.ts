/** A preview of fires, with what a person should notice about each. */
import type { Schema } from "../api/client";
import { offset } from "./time";

export interface Marked {
  line: Schema<"Preview">;
  /** The zone's offset at this instant. */
  offset: string;
  /** The offset before it, where the clock was changed since the line before. */
  changedFrom: string | undefined;
}

/** The lines with the offsets of a zone; between two of them the clock may have been changed. */
export function mark(lines: readonly Schema<"Preview">[], zone: string): Marked[] {
  let before: string | undefined;
  return lines.map((line) => {
    const now = offset(line.fire_time, zone);
    const changedFrom = before !== undefined && before !== now ? before : undefined;
    before = offset(line.last, zone);
    return { line, offset: now, changedFrom };
  });
}
