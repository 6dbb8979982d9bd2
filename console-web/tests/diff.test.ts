import { describe, expect, it } from "vitest";
import { diff, isSame, lines, MAX_LINES } from "../src/lib/diff";
import { DEFAULTS, definitionOf, FIELDS, readDefinition } from "../src/lib/definition";

describe("diff", () => {
  it("names what differs, in the given order, the rest by name after it", () => {
    const before = { z: 1, name: "a", b: [1, 2], same: { x: 1, y: 2 } };
    const after = { z: 2, name: "b", b: [2, 1], same: { y: 2, x: 1 } };
    expect(diff(before, after, ["name", "z"])).toEqual([
      { field: "name", before: "a", after: "b" },
      { field: "z", before: 1, after: 2 },
      { field: "b", before: [1, 2], after: [2, 1] },
    ]);
  });
  it("counts what is missing as null", () => {
    expect(diff({ a: 1, gone: undefined }, { b: 2 })).toEqual([
      { field: "a", before: 1, after: null },
      { field: "b", before: null, after: 2 },
    ]);
    expect(diff({ a: null }, {})).toEqual([]);
  });
  it("knows 0 from nothing, and text from numbers", () => {
    expect(isSame(0, null)).toBe(false);
    expect(isSame("1", 1)).toBe(false);
    expect(isSame([{ b: 1, a: 2 }], [{ a: 2, b: 1 }])).toBe(true);
  });
});

describe("lines", () => {
  it("keeps what two texts have in common", () => {
    expect(lines("a\nb\nc", "a\nx\nc\nd").map(({ is, text }) => `${is[0] ?? ""}${text}`)).toEqual(["sa", "rb", "ax", "sc", "ad"]);
  });
  it("gives both texts whole: without the added it is the old, without the removed the new", () => {
    const [before, after] = ["1\n2\n3\n4\n5\n", "0\n2\n4\n4\n6"];
    const shown = lines(before, after);
    expect(shown.filter(({ is }) => is !== "added").map(({ text }) => text).join("\n")).toBe(before);
    expect(shown.filter(({ is }) => is !== "removed").map(({ text }) => text).join("\n")).toBe(after);
  });
  it("does not compare what is too long, and still shows it", () => {
    const long = "x\n".repeat(MAX_LINES);
    expect(lines(long, "y").filter(({ is }) => is === "same")).toEqual([]);
    expect(lines(long, "y")).toHaveLength(MAX_LINES + 2);
  });
});

describe("readDefinition", () => {
  const kept = JSON.stringify({ ...DEFAULTS, name: "a", started: true, pause_note: null });
  it("takes the definition, and leaves the state", () => {
    const read = readDefinition(kept);
    expect(read).toEqual({ ...DEFAULTS, name: "a" });
    expect(Object.keys(read ?? {})).not.toContain("started");
  });
  it("refuses what it does not understand whole", () => {
    expect(readDefinition(null)).toBeUndefined();
    expect(readDefinition("[]")).toBeUndefined();
    expect(readDefinition("{")).toBeUndefined();
    expect(readDefinition('{"at":1,"log":"2"}')).toBeUndefined();
    expect(readDefinition(kept.replace('"concurrent"', '"of a newer node"'))).toBeUndefined();
    expect(readDefinition(kept.replace('"max_retries":5', '"max_retries":"5"'))).toBeUndefined();
  });
  it("gives of a task what can be written", () => {
    expect(Object.keys(definitionOf({ ...DEFAULTS, name: "b" })).sort()).toEqual([...FIELDS].sort());
  });
});
