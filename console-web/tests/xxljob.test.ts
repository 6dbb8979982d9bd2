import { describe, expect, it } from "vitest";
import { firstNumber, isDoorOpen, librariesOf, libraryOf, notesOf, propertiesOf } from "../src/lib/xxljob";

describe("libraries", () => {
  it("are known by what they call with", () => {
    const agents = ["Java/17.0.13", "Python/3.11", "Go-http-client/1.1", "axios/1.7.4", "curl/8.5.0", ""];
    expect(agents.map(libraryOf)).toEqual(["java", "python", "go", "node", "other", "other"]);
  });
  it("are those of executors of xxl-job alone, each once", () => {
    const executors = [
      { plain: true, version: "axios/1.7.4" },
      { plain: false, version: "Python/3.11" },
      { plain: true, version: "Java/17.0.13" },
      { plain: true, version: "Java/8" },
    ];
    expect(librariesOf(executors)).toEqual(["java", "node"]);
    expect(librariesOf([])).toEqual([]);
  });
});

describe("the door", () => {
  const key = (kind: "token" | "signing", state: "valid" | "expired" | "revoked") => ({ kind, state });
  it("is open while a token is valid, whatever else there is", () => {
    expect(isDoorOpen([])).toBe(false);
    expect(isDoorOpen([key("signing", "valid"), key("token", "revoked"), key("token", "expired")])).toBe(false);
    expect(isDoorOpen([key("token", "revoked"), key("token", "valid")])).toBe(true);
  });
  it("is described to executors with each node's address below its context path", () => {
    expect(propertiesOf(["http://10.0.0.1:8526", "https://node-2:8526/"], "orders", "s3cret").split("\n")).toEqual([
      "xxl.job.admin.addresses=http://10.0.0.1:8526/xxl-job-admin,https://node-2:8526/xxl-job-admin",
      "xxl.job.accessToken=s3cret",
      "xxl.job.executor.appname=orders",
    ]);
  });
});

describe("the number of a run", () => {
  it("is the lower 53 bits of its log's id, exactly", () => {
    expect(firstNumber("132271570944028672")).toBe("6170781377654784");
    expect(firstNumber("9007199254740993")).toBe("1");
    expect(firstNumber("9007199254740991")).toBe("9007199254740991");
  });
  it("is none of what is no id", () => {
    for (const id of ["", "-1", "one", "1.5", "12345678901234567890"]) expect(firstNumber(id), id).toBeUndefined();
  });
});

describe("notes of a task", () => {
  const task = { block_strategy: "concurrent", block_scope: "executor", timeout_ms: 0 } as const;
  it("say that runs come one after the other, and that some libraries refuse them", () => {
    expect(notesOf(task, ["java"])).toEqual(["serial"]);
    expect(notesOf(task, ["java", "go"])).toEqual(["serial", "refused"]);
    expect(notesOf({ ...task, block_strategy: "serial" }, ["node"])).toEqual(["refused"]);
    expect(notesOf({ ...task, block_strategy: "serial", block_scope: "app" }, ["node"])).toEqual([]);
    expect(notesOf({ ...task, block_strategy: "discard_later" }, ["go"])).toEqual([]);
  });
  it("say where an earlier run cannot be stopped", () => {
    const covering = { ...task, block_strategy: "cover_early" } as const;
    expect(notesOf(covering, ["python"])).toEqual([]);
    expect(notesOf(covering, ["go"])).toEqual(["covered"]);
    expect(notesOf({ ...covering, block_scope: "app" }, ["go"])).toEqual([]);
  });
  it("say that a time-out is counted in seconds", () => {
    const serial = { ...task, block_strategy: "serial" } as const;
    expect(notesOf({ ...serial, timeout_ms: 1_500 }, ["java"])).toEqual(["seconds"]);
    expect(notesOf({ ...serial, timeout_ms: 2_000 }, ["java"])).toEqual([]);
  });
});
