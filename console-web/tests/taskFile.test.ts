import { expect, it } from "vitest";
import { fileName, readTaskFile, writeTaskFile } from "../src/lib/taskFile";

it("reads what it writes", () => {
  const text = writeTaskFile([{ version: 1, task: [{ name: "a" }], next: "1" }, { version: 1, task: [{ name: "b" }] }]);
  expect(readTaskFile(text)).toEqual({ file: { version: 1, task: [{ name: "a" }, { name: "b" }] } });
});

it("keeps what stands at the top", () => {
  expect(readTaskFile('{"version":1,"tenant":"retail","defaults":{"app":"x"},"task":[]}')).toEqual({
    file: { version: 1, tenant: "retail", defaults: { app: "x" }, task: [] },
  });
});

it("says what is wrong before the node is asked", () => {
  expect(readTaskFile("  ")).toEqual({ problem: "empty" });
  expect(readTaskFile('version = 1\n[[task]]\nname = "a"')).toMatchObject({ problem: "no_json" });
  expect(readTaskFile('[{"name":"a"}]')).toEqual({ problem: "no_file" });
  expect(readTaskFile('{"version":1}')).toEqual({ problem: "no_file" });
  expect(readTaskFile('{"version":2,"task":[]}')).toEqual({ problem: "version" });
  expect(readTaskFile('{"task":[]}')).toEqual({ problem: "version" });
});

it("names a file so that every system takes it", () => {
  expect(fileName("retail", undefined)).toBe("tasks-retail.json");
  expect(fileName("账务", "a/b: c")).toBe("tasks-账务-a_b_c.json");
});
