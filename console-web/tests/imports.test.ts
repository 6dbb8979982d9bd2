import { describe, expect, it } from "vitest";
import { before, commandsOf, groupsOf, isBefore, joined, kindOf, readOrigin, sideOf } from "../src/lib/imports";

function task(id: string, app: string, state: "started" | "stopped" | "paused", valid_from = 0) {
  return { id, name: `task ${id}`, app, state, valid_from };
}

describe("ids and origins", () => {
  it("are compared as what they are, however long", () => {
    expect(before("132271570944028672")).toBe("132271570944028671");
    expect(before("1")).toBe("0");
    expect(isBefore("9007199254740993", "9007199254740994")).toBe(true);
    expect(isBefore("10", "9")).toBe(false);
    expect(isBefore("9", "9")).toBe(false);
  });
  it("name a source and what it calls the task", () => {
    expect(readOrigin("old-admin#7")).toEqual({ source: "old-admin", there: "7" });
    expect(readOrigin("old-admin")).toEqual({ source: "old-admin", there: "" });
  });
  it("are joined with tasks; one whose task could not be read stays", () => {
    const origins = [
      { task: "1", origin: "xxl-job#7", number: 7 },
      { task: "2", origin: "xxl-job#8", number: null },
    ];
    expect(joined(origins, [task("1", "orders", "started"), task("3", "orders", "started")])).toEqual([
      { id: "1", source: "xxl-job", there: "7", number: 7, task: task("1", "orders", "started") },
      { id: "2", source: "xxl-job", there: "8", number: undefined, task: undefined },
    ]);
  });
});

describe("where a task runs", () => {
  it("is told by its state, and by the first fire that a switch has noted", () => {
    expect(sideOf(task("1", "a", "started", 5))).toBe("here");
    expect(sideOf(task("1", "a", "paused", 5))).toBe("paused");
    expect(sideOf(task("1", "a", "stopped", 5))).toBe("back");
    expect(sideOf(task("1", "a", "stopped"))).toBe("waiting");
  });
});

describe("groups", () => {
  const imported = (source: string, ...tasks: ReturnType<typeof task>[]) => tasks.map((each) => ({ id: each.id, source, there: each.id, number: undefined, task: each }));
  it("are those of a source and an app, by name", () => {
    const all = [...imported("b", task("1", "z", "started")), ...imported("a", task("2", "z", "stopped"), task("3", "y", "stopped"))];
    expect(groupsOf(all).map(({ source, app }) => `${source} ${app}`)).toEqual(["a y", "a z", "b z"]);
    expect(groupsOf([{ id: "1", source: "a", there: "1", number: undefined, task: undefined }])).toEqual([]);
  });
  it("are switched when some run here, though what was stopped there stays stopped", () => {
    const [group] = groupsOf(imported("a", task("1", "z", "started", 5), task("2", "z", "stopped"), task("3", "z", "paused", 5)));
    expect(group).toEqual({ source: "a", app: "z", counts: { here: 1, paused: 1, back: 0, waiting: 1 }, progress: "here" });
  });
  it("are given back when none runs here and some did, partly when some do", () => {
    expect(groupsOf(imported("a", task("1", "z", "stopped", 5), task("2", "z", "stopped")))[0]?.progress).toBe("back");
    expect(groupsOf(imported("a", task("1", "z", "stopped", 5), task("2", "z", "started", 5)))[0]?.progress).toBe("partly");
    expect(groupsOf(imported("a", task("1", "z", "stopped")))[0]?.progress).toBe("waiting");
  });
});

describe("commands", () => {
  const about = { url: "http://node:8526", tenant: "shop", kind: "xxl-job", source: undefined, app: undefined } as const;
  it("name what this side knows, and leave the rest to be filled in", () => {
    const { look, take, move, back } = commandsOf(about);
    expect(take).toBe("carillon --url http://node:8526 import xxl-job --from mysql://reader@HOST:3306/xxl_job --time-zone ZONE --tenant shop");
    expect(look).toBe(`${take} --dry-run`);
    expect(move).toBe(take.replace("import xxl-job", "import switch").replace("reader", "switcher"));
    expect(back).toBe(take.replace("import xxl-job", "import undo").replace("reader", "switcher"));
  });
  it("name a source that has another name than it gets by itself, and the group", () => {
    expect(commandsOf({ ...about, source: "xxl-job" }).take).not.toContain("--source");
    expect(commandsOf({ ...about, source: "old", app: "orders" }).move).toMatch(/ --tenant shop --source old --group orders$/);
  });
  it("have no switch for horace, which has no groups", () => {
    const commands = commandsOf({ ...about, kind: "horace", source: "horace", app: "orders" });
    expect(commands).toEqual({ take: expect.stringMatching(/import horace .*\/cron_job .*--tenant shop$/) as string, look: expect.stringMatching(/--dry-run$/) as string });
  });
  it("are of the kind that a source is named after", () => {
    expect([kindOf("horace"), kindOf("xxl-job"), kindOf("old"), kindOf(undefined)]).toEqual(["horace", "xxl-job", "xxl-job", "xxl-job"]);
  });
});
