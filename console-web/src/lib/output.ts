/**
 * What a page holds of a run's output: a window of bounded size over a text that may be endless. Pages join at either
 * end; what no longer fits is dropped from the other. Offsets are bytes of UTF-8, as the API counts them.
 */
import { beginning, visible } from "./rawText";

/** Lines in the page at most. */
export const MAX_ROWS = 5_000;

/** Characters in the page at most. */
export const MAX_CHARS = 1_000_000;

/** Where a page begins to read: so many bytes before the end. */
export const TAIL_BYTES = 512 * 1024;

/** A longer line is shown in pieces: browsers lay out a line of a megabyte slowly. */
export const PIECE_CHARS = 2_000;

const BLOCK_ROWS = 100;
const BLOCK_CHARS = 16_384;

/** A terminal code is not cut in two if it is no longer than this. */
const ESCAPE_CHARS = 64;

/** A line, or a piece of a long one, ready to be shown. */
export interface Row {
  text: string;
  /** Whether it goes on where the row above ends. */
  isMore: boolean;
}

/** Some rows that are drawn, and dropped, together. `from` names it: it never changes. */
export interface Block {
  from: number;
  bytes: number;
  chars: number;
  rows: readonly Row[];
}

/** The window. */
export interface Held {
  /** Offset of its first byte. */
  from: number;
  /** Offset after its last byte: where the next page begins. */
  next: number;
  blocks: readonly Block[];
  /** The last line as far as it has come, as it was sent; never longer than a piece. */
  rest: string;
  /** Whether `rest` goes on a row that is in a block already. */
  restIsMore: boolean;
  /** Whether more was dropped before its first row than it began without. */
  hasDropped: boolean;
}

const encoder = new TextEncoder();

function bytesOf(text: string): number {
  return encoder.encode(text).length;
}

/** Nothing yet, from this offset on. */
export function nothing(from: number): Held {
  return { from, next: from, blocks: [], rest: "", restIsMore: false, hasDropped: false };
}

/** A window that begins with a page from the middle: its first, broken line is left out. */
export function begin(from: number, text: string, next: number): Held {
  if (from === 0) return append(nothing(0), text, next);
  const end = text.indexOf("\n");
  // One line longer than the page: better its middle than nothing.
  if (end === -1) return append(nothing(from), text, next);
  return append(nothing(from + bytesOf(text.slice(0, end + 1))), text.slice(end + 1), next);
}

/** A piece of a line; never half a character, nor, if it can be helped, half a terminal code. */
function piece(line: string): string {
  const cut = beginning(line, PIECE_CHARS);
  const escape = cut.lastIndexOf("\u001b");
  return escape > 0 && cut.length - escape < ESCAPE_CHARS ? cut.slice(0, escape) : cut;
}

/** Gathers rows into blocks, going on with the last one while it has room. */
class Blocks {
  readonly all: Block[];
  private open: { from: number; bytes: number; chars: number; rows: Row[] } | undefined;

  constructor(
    before: readonly Block[],
    private at: number,
  ) {
    this.all = [...before];
    const last = this.all.at(-1);
    if (last !== undefined && last.rows.length < BLOCK_ROWS && last.chars < BLOCK_CHARS) {
      this.all.pop();
      this.open = { ...last, rows: [...last.rows] };
    }
  }

  add(raw: string, isMore: boolean, bytes: number) {
    this.open ??= { from: this.at, bytes: 0, chars: 0, rows: [] };
    const row = { text: visible(raw), isMore };
    this.open.rows.push(row);
    this.open.bytes += bytes;
    this.open.chars += row.text.length;
    this.at += bytes;
    if (this.open.rows.length >= BLOCK_ROWS || this.open.chars >= BLOCK_CHARS) this.close();
  }

  close() {
    if (this.open !== undefined) this.all.push(this.open);
    this.open = undefined;
  }
}

function endOf(held: Pick<Held, "blocks" | "from">): number {
  const last = held.blocks.at(-1);
  return last === undefined ? held.from : last.from + last.bytes;
}

/** The window with a page after it; what is too much goes from the front. */
export function append(held: Held, text: string, next: number): Held {
  if (text === "") return { ...held, next };
  const blocks = new Blocks(held.blocks, endOf(held));
  const lines = (held.rest + text).split("\n");
  const last = lines.pop() ?? "";
  let isMore = held.restIsMore;
  for (const line of lines) {
    let left = line;
    while (left.length > PIECE_CHARS) {
      const first = piece(left);
      blocks.add(first, isMore, bytesOf(first));
      left = left.slice(first.length);
      isMore = true;
    }
    blocks.add(left, isMore, bytesOf(left) + 1);
    isMore = false;
  }
  let rest = last;
  while (rest.length > PIECE_CHARS) {
    const first = piece(rest);
    blocks.add(first, isMore, bytesOf(first));
    rest = rest.slice(first.length);
    isMore = true;
  }
  blocks.close();
  return fromFront({ ...held, next, blocks: blocks.all, rest, restIsMore: isMore });
}

/** The window with the text before it, which begins at `from`; what is too much goes from the end, and `next` with it. */
export function prepend(held: Held, from: number, text: string): Held {
  const before = begin(from, text, held.from);
  const blocks = [...before.blocks];
  if (before.rest !== "") {
    // A line that is in two: its second part is the first row of what was held.
    const row = { text: visible(before.rest), isMore: before.restIsMore };
    blocks.push({ from: endOf(before), bytes: bytesOf(before.rest), chars: row.text.length, rows: [row] });
  }
  return fromEnd({ ...held, from: before.from, blocks: [...blocks, ...held.blocks], hasDropped: false });
}

function sizeOf(blocks: readonly Block[]): { rows: number; chars: number } {
  return blocks.reduce((sum, block) => ({ rows: sum.rows + block.rows.length, chars: sum.chars + block.chars }), { rows: 0, chars: 0 });
}

/** Whether one more page would drop something. */
export function isFull(held: Held): boolean {
  const { rows, chars } = sizeOf(held.blocks);
  return rows > MAX_ROWS - BLOCK_ROWS || chars > MAX_CHARS - BLOCK_CHARS;
}

function fromFront(held: Held): Held {
  let { rows, chars } = sizeOf(held.blocks);
  let count = 0;
  let { from } = held;
  for (const block of held.blocks) {
    if (rows <= MAX_ROWS && chars <= MAX_CHARS) break;
    rows -= block.rows.length;
    chars -= block.chars;
    from = block.from + block.bytes;
    count += 1;
  }
  return count === 0 ? held : { ...held, from, blocks: held.blocks.slice(count), hasDropped: true };
}

function fromEnd(held: Held): Held {
  let { rows, chars } = sizeOf(held.blocks);
  const blocks = [...held.blocks];
  while (blocks.length > 1 && (rows > MAX_ROWS || chars > MAX_CHARS)) {
    const last = blocks.pop();
    rows -= last?.rows.length ?? 0;
    chars -= last?.chars ?? 0;
  }
  if (blocks.length === held.blocks.length) return held;
  return { ...held, blocks, next: endOf({ blocks, from: held.from }), rest: "", restIsMore: false };
}

/** The last line as it can be shown now: without the beginning of a terminal code whose end is still to come. */
export function restOf(held: Held): Row | undefined {
  // eslint-disable-next-line no-control-regex -- the code that begins terminal codes
  const whole = held.rest.replace(/\u001b(?:\[[0-?]*[ -/]*)?$/, "");
  return whole === "" ? undefined : { text: visible(whole), isMore: held.restIsMore };
}

/** Where something was found; `row` counts within the block. */
export interface Hit {
  block: number;
  row: number;
}

/** The rows that hold a text, whichever its case. A hit over the seam of two pieces of a long line is not found. */
export function find(held: Held, wanted: string): Hit[] {
  if (wanted === "") return [];
  const lower = wanted.toLowerCase();
  return held.blocks.flatMap((block) =>
    block.rows.flatMap((row, index) => (row.text.toLowerCase().includes(lower) ? [{ block: block.from, row: index }] : [])),
  );
}

/** A text in parts, every second of which is what was looked for. */
export function partsOf(text: string, wanted: string): string[] {
  if (wanted === "") return [text];
  const parts: string[] = [];
  const [lower, sought] = [text.toLowerCase(), wanted.toLowerCase()];
  // Some letters change their length with their case; then positions would not fit.
  if (lower.length !== text.length || sought.length !== wanted.length) return [text];
  let at = 0;
  for (let found = lower.indexOf(sought); found !== -1; found = lower.indexOf(sought, at)) {
    parts.push(text.slice(at, found), text.slice(found, found + sought.length));
    at = found + sought.length;
  }
  parts.push(text.slice(at));
  return parts;
}
