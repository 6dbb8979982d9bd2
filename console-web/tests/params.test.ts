import { expect, it } from "vitest";
import { kindOf, pretty } from "../src/lib/params";

it("tells JSON from what only looks like it", () => {
  expect(kindOf(" \n")).toBe("empty");
  expect(kindOf("hello")).toBe("text");
  expect(kindOf("5")).toBe("text");
  expect(kindOf(' {"a": [1]}')).toBe("json");
  expect(kindOf('{"a": 1,}')).toBe("broken");
});

it("lays JSON out without changing what it says", () => {
  expect(pretty('{"a":[1,"x 12"]}')).toBe('{\n  "a": [\n    1,\n    "x 12"\n  ]\n}');
  expect(pretty("hello")).toBeUndefined();
  // Read as a number of JavaScript, the id would become another one.
  expect(pretty('{"id":9007199254740993}')).toBeUndefined();
  expect(pretty('{"rate":1.0}')).toBeUndefined();
});
