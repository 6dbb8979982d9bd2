import { describe, expect, test } from "vitest";
import { auditDiff, pretty, saysNothing } from "../src/lib/auditDiff";

describe("what an entry changed", () => {
  test("only fields that differ, nested ones by their path", () => {
    const before = { name: "a", spec: { cron: "1", tags: { x: 1 } }, same: [1] };
    const after = { name: "a", spec: { cron: "2", tags: { x: 2 } }, same: [1] };
    expect(auditDiff(JSON.stringify(before), JSON.stringify(after))).toEqual([
      { field: "spec.cron", kind: "changed", before: "1", after: "2" },
      { field: "spec.tags.x", kind: "changed", before: "1", after: "2" },
    ]);
  });

  test("fields that came or went", () => {
    expect(auditDiff('{"a":1,"b":2}', '{"b":2,"c":null}')).toEqual([
      { field: "a", kind: "removed", before: "1" },
      { field: "c", kind: "added", after: "null" },
    ]);
  });

  test("of lists of plain values what came and went; also when only the order changed", () => {
    expect(auditDiff('{"p":["x","y"]}', '{"p":["y","z"]}')).toEqual([
      { field: "p", kind: "changed", before: '["x","y"]', after: '["y","z"]', came: ["z"], went: ["x"] },
    ]);
    expect(auditDiff('{"p":["x","y"]}', '{"p":["y","x"]}')).toMatchObject([{ kind: "changed", came: [], went: [] }]);
  });

  test("lists of objects are compared as a whole", () => {
    const [change] = auditDiff('{"parents":[{"task":"a"}]}', '{"parents":[]}');
    expect(change).toEqual({ field: "parents", kind: "changed", before: '[{"task":"a"}]', after: "[]" });
  });

  test("a thing that was created has no before, one that was deleted no after", () => {
    expect(auditDiff(null, '{"name":"x"}')).toEqual([{ field: "name", kind: "added", after: "x" }]);
    expect(auditDiff('{"name":"x"}', null)).toEqual([{ field: "name", kind: "removed", before: "x" }]);
    expect(auditDiff(null, null)).toEqual([]);
  });

  test("a text that is no JSON is shown as it is", () => {
    expect(auditDiff("old <b>", "new")).toEqual([{ field: "", kind: "changed", before: "old <b>", after: "new" }]);
  });

  test("the text 1 and the number 1 differ", () => {
    expect(auditDiff('{"a":"1"}', '{"a":1}')).toHaveLength(1);
  });

  test("an empty object is a value; a field of that name does not vanish", () => {
    expect(auditDiff('{"a":{"b":1}}', '{"a":{}}')).toEqual([
      { field: "a.b", kind: "removed", before: "1" },
      { field: "a", kind: "added", after: "{}" },
    ]);
  });
});

test("what is empty says nothing, unless it was changed", () => {
  const said = auditDiff(null, '{"a":0,"b":"","c":[],"d":false,"e":1,"f":null}').filter((change) => !saysNothing(change));
  expect(said.map(({ field }) => field)).toEqual(["e"]);
  expect(auditDiff('{"a":5}', '{"a":0}').filter(saysNothing)).toEqual([]);
});

test("only JSON is written with line breaks", () => {
  expect(pretty('{"a":1}')).toBe('{\n  "a": 1\n}');
  expect(pretty("a\tb {")).toBe("a\tb {");
  expect(pretty('"12"')).toBe('"12"');
});
