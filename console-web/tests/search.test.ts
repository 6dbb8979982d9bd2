import { expect, it } from "vitest";
import { readFilters, withFilters } from "../src/lib/search";

const NAMES = ["status", "task"] as const;

it("reads the filters that are set", () => {
  expect(readFilters(new URLSearchParams("status=failed&task=&other=1"), NAMES)).toEqual({ status: "failed" });
});

it("sets and takes away, and leaves the rest", () => {
  const search = new URLSearchParams("tenant=retail&status=failed");
  expect(withFilters(search, { status: undefined, task: "7" }).toString()).toBe("tenant=retail&task=7");
  expect(withFilters(search, { status: "" }).toString()).toBe("tenant=retail");
  expect(search.toString()).toBe("tenant=retail&status=failed");
});
