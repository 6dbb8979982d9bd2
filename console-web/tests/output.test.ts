import { describe, expect, it } from "vitest";
import { append, begin, find, isFull, MAX_CHARS, MAX_ROWS, nothing, partsOf, PIECE_CHARS, prepend, restOf, type Held } from "../src/lib/output";

const bytes = (text: string) => new TextEncoder().encode(text).length;
const lines = (held: Held) => {
  const rest = restOf(held);
  const rows = [...held.blocks.flatMap((block) => block.rows), ...(rest === undefined ? [] : [rest])];
  const out: string[] = [];
  for (const row of rows) {
    if (row.isMore && out.length > 0) out.push(`${out.pop() ?? ""}${row.text}`);
    else out.push(row.text);
  }
  return out;
};
/** Sends a text in pages of so many characters, as a stream would. */
function sent(text: string, step: number, held = nothing(0)): Held {
  for (let at = 0; at < text.length; at += step) {
    const page = text.slice(at, at + step);
    held = append(held, page, held.next + bytes(page));
  }
  return held;
}

describe("pages of output", () => {
  it("join to lines wherever they were cut", () => {
    const text = "first\nsecond line\n\nünïcödé 中文\nlast without an end";
    for (const step of [1, 3, 7, 1000]) {
      const held = sent(text, step);
      expect(lines(held)).toEqual(["first", "second line", "", "ünïcödé 中文", "last without an end"]);
      expect(held.next).toBe(bytes(text));
    }
  });

  it("drop the oldest lines, and count their bytes, not their characters", () => {
    const line = "中文 €";
    const held = sent(`${line}\n`.repeat(MAX_ROWS + 300), 9_001);
    const rows = held.blocks.reduce((sum, block) => sum + block.rows.length, 0);
    expect(rows).toBeLessThanOrEqual(MAX_ROWS);
    expect(held.hasDropped).toBe(true);
    const dropped = MAX_ROWS + 300 - rows;
    expect(held.from).toBe(dropped * bytes(`${line}\n`));
    expect(held.blocks[0]?.from).toBe(held.from);
  });

  it("of one endless line stay bounded, in pieces", () => {
    const held = sent("x".repeat(3 * MAX_CHARS), 262_144);
    const rows = held.blocks.flatMap((block) => block.rows);
    expect(rows.reduce((sum, row) => sum + row.text.length, 0)).toBeLessThanOrEqual(MAX_CHARS);
    expect(Math.max(...rows.map((row) => row.text.length))).toBeLessThanOrEqual(PIECE_CHARS);
    expect(held.from + rows.reduce((sum, row) => sum + row.text.length, 0) + held.rest.length).toBe(3 * MAX_CHARS);
    expect(lines(held)).toHaveLength(1);
    expect(isFull(held)).toBe(true);
  });

  it("never cut a character of two halves", () => {
    const text = `a${"😀".repeat(PIECE_CHARS)}`;
    const held = sent(`${text}\n`, 100_000);
    for (const row of held.blocks.flatMap((block) => block.rows)) expect(row.text).toBe(new TextDecoder().decode(new TextEncoder().encode(row.text)));
    expect(lines(held)).toEqual([text]);
    expect(held.next).toBe(bytes(`${text}\n`));
  });

  it("show no terminal codes, also when a page or a piece ends within one", () => {
    const text = `\u001b[1;31mred\u001b[0m and ${"p".repeat(PIECE_CHARS - 12)}\u001b[38;5;200mpink\u001b[0m\n`;
    for (const step of [1, 2, 5, 100_000]) expect(lines(sent(text, step)).join("")).toBe(`red and ${"p".repeat(PIECE_CHARS - 12)}pink`);
    expect(restOf(sent("half \u001b[3", 100))?.text).toBe("half ");
  });

  it("begin at the first whole line when they begin in the middle", () => {
    const held = begin(1_000, "oken ü line\nwhole\n", 1_000 + bytes("oken ü line\nwhole\n"));
    expect(lines(held)).toEqual(["whole"]);
    expect(held.from).toBe(1_000 + bytes("oken ü line\n"));
    expect(lines(begin(0, "oken\nwhole\n", 11))).toEqual(["oken", "whole"]);
    expect(lines(begin(5, "no end in sight", 20))).toEqual(["no end in sight"]);
  });
});

describe("earlier output", () => {
  it("joins before what is held", () => {
    const early = "one\ntwo ü\n";
    const held = append(nothing(bytes(early)), "three\nfour", bytes(early) + 10);
    const all = prepend(held, 0, early);
    expect(lines(all)).toEqual(["one", "two ü", "three", "four"]);
    expect(all).toMatchObject({ from: 0, next: bytes(early) + 10 });
    expect(lines(append(all, " and more\n", all.next + 10))).toEqual(["one", "two ü", "three", "four and more"]);
  });

  it("joins a long line whose end is held", () => {
    const long = "z".repeat(MAX_CHARS + 500_000);
    const held = sent(long, 262_144);
    const start = held.from - 100_000;
    const all = prepend(held, start, long.slice(start, held.from));
    expect(all.from).toBe(start);
    expect(lines(all)).toHaveLength(1);
  });

  it("drops the end when it is too much, and goes on from there", () => {
    const text = Array.from({ length: MAX_ROWS }, (_, index) => `line ${String(index).padStart(6, "0")}\n`).join("");
    const held = append(nothing(bytes(text)), text, 2 * bytes(text));
    const all = prepend(held, 0, text);
    expect(all.from).toBe(0);
    const count = all.blocks.reduce((sum, block) => sum + block.rows.length, 0);
    expect(count).toBeLessThanOrEqual(MAX_ROWS);
    expect(all.next).toBe(count * 12);
    // Nothing is lost at the new end: what comes next begins there.
    expect(all.rest).toBe("");
  });
});

describe("search", () => {
  it("finds rows whichever the case, and parts of them", () => {
    const held = sent("Alpha\nbeta ALPHA alpha\ngamma\n", 4);
    expect(find(held, "alpha").map((hit) => hit.row)).toEqual([0, 1]);
    expect(find(held, "")).toEqual([]);
    expect(partsOf("beta ALPHA alpha", "alpha")).toEqual(["beta ", "ALPHA", " ", "alpha", ""]);
    expect(partsOf("İstanbul", "i")).toEqual(["İstanbul"]);
  });
});
