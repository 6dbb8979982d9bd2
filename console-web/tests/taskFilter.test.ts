import { expect, it } from "vitest";
import { matches } from "../src/lib/taskFilter";

const task = { name: "Nightly Report", handler: "report" };

it("finds parts of names, whatever their case", () => {
  expect(matches(task, {})).toBe(true);
  expect(matches(task, { name: " night " })).toBe(true);
  expect(matches(task, { name: "daily" })).toBe(false);
  expect(matches(task, { handler: "port" })).toBe(true);
});

it("asks for all that is set", () => {
  expect(matches(task, { name: "night", handler: "rep" })).toBe(true);
  expect(matches(task, { name: "night", handler: "mail" })).toBe(false);
});
