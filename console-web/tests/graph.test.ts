import { expect, it } from "vitest";
import { layout } from "../src/lib/graph";

function places(ids: string[], ...links: [string, string][]) {
  return Object.fromEntries(layout(ids, links.map(([from, to]) => ({ from, to }))).map(({ id, layer, row }) => [id, [layer, row]]));
}

it("puts a child after the last of its parents", () => {
  expect(places(["a", "b", "c"], ["a", "b"], ["b", "c"], ["a", "c"])).toEqual({ a: [0, 0], b: [1, 0], c: [2, 0] });
});

it("keeps children near their parents", () => {
  expect(places(["a", "b", "y", "x"], ["a", "x"], ["b", "y"])).toEqual({ a: [0, 0], b: [0, 1], x: [1, 0], y: [1, 1] });
});

it("does not care for links to tasks that it does not know", () => {
  expect(places(["a"], ["z", "a"])).toEqual({ a: [0, 0] });
});

it("comes to an end with a cycle", () => {
  expect(Object.keys(places(["a", "b"], ["a", "b"], ["b", "a"]))).toEqual(["a", "b"]);
});
