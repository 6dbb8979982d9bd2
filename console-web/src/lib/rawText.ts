/**
 * Text of tasks and runs, made fit to be looked at. React keeps it from becoming HTML; this keeps it from
 * hiding things: what a terminal or a bidirectional override would act on is taken out or made visible.
 */

// Colours and cursor moves (CSI), and titles and links (OSC) with their end. Each begins with the one byte that the
// rest cannot hold, so that no text makes them slow.
// eslint-disable-next-line no-control-regex -- control characters are what this is about
const ANSI = /\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[ -/]*[0-Z\\^-~]/g;

// eslint-disable-next-line no-control-regex -- the same
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f]/g;

/** Embeddings, overrides and isolates: they let text show in another order than it has. */
const BIDI = /[\u202a-\u202e\u2066-\u2069]/g;

const DELETE = 0x7f;

function codeOf(character: string): number {
  return character.codePointAt(0) ?? 0;
}

/** The picture of a control character: `␀` for a null byte. */
function picture(character: string): string {
  const code = codeOf(character);
  return String.fromCodePoint(code === DELETE ? 0x2421 : 0x2400 + code);
}

function name(character: string): string {
  return `‹U+${codeOf(character).toString(16).toUpperCase().padStart(4, "0")}›`;
}

/** One text as it can be shown: no terminal codes, other control characters and bidirectional overrides as visible marks. Line breaks and tabs stay. */
export function visible(text: string): string {
  return text.replace(ANSI, "").replace(/\r(?=\n|$)/g, "").replace(CONTROL, picture).replace(BIDI, name);
}

/** The beginning of a text, of at most `limit` UTF-16 units, never half a character. */
export function beginning(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const isHalf = codeOf(text.charAt(limit - 1)) >= 0xd800 && codeOf(text.charAt(limit - 1)) <= 0xdbff;
  return text.slice(0, isHalf ? limit - 1 : limit);
}
