import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { groupPermissions, heldAnywhere, heldIn, lacking, PLATFORM_ONLY } from "../src/lib/access";

const grant = (tenant_id: string | null, apps: string[], ...permissions: string[]) => ({ tenant_id, tenant: tenant_id === null ? null : `t${tenant_id}`, apps, permissions });

describe("what is held in a place", () => {
  const access = [grant(null, [], "audit.read"), grant("1", [], "tasks.read"), grant("1", ["a", "b"], "tasks.run"), grant("1", ["b"], "tasks.stop")];

  test("the platform's counts everywhere, a tenant's only there", () => {
    expect([...heldIn(access, { tenantId: null })]).toEqual(["audit.read"]);
    expect([...heldIn(access, { tenantId: "2" })]).toEqual(["audit.read"]);
    expect([...heldIn(access, { tenantId: "1" })]).toEqual(["audit.read", "tasks.read"]);
  });

  test("what is held in some apps counts for these alone, and in all of those that are named", () => {
    expect(heldIn(access, { tenantId: "1", apps: ["b"] })).toContain("tasks.stop");
    expect(heldIn(access, { tenantId: "1", apps: ["a", "b"] })).toContain("tasks.run");
    expect(heldIn(access, { tenantId: "1", apps: ["a", "b"] })).not.toContain("tasks.stop");
    expect(heldIn(access, { tenantId: "1", apps: ["c"] })).not.toContain("tasks.run");
    expect(heldIn(access, { tenantId: "2", apps: ["a"] })).not.toContain("tasks.run");
  });

  test("anywhere is all of it", () => {
    expect(heldAnywhere(access).size).toBe(4);
  });

  test("what only the platform grants is not missed in a tenant", () => {
    expect(lacking(access, ["tasks.read", "tasks.edit", "nodes.read"], { tenantId: "1" })).toEqual(["tasks.edit"]);
    expect(lacking(access, ["audit.read", "nodes.read"], { tenantId: null })).toEqual(["nodes.read"]);
  });
});

describe("groups", () => {
  const some = [
    { name: "tasks.read", description: "See tasks" },
    { name: "apps.read", description: "See apps" },
    { name: "tasks.run", description: "Run tasks by hand" },
  ];

  test("by what comes before the dot, in order", () => {
    expect(groupPermissions(some).map(({ resource, permissions }) => [resource, permissions.length])).toEqual([
      ["tasks", 2],
      ["apps", 1],
    ]);
  });

  test("a search looks at names and descriptions, without regard to case", () => {
    expect(groupPermissions(some, " HAND ")).toEqual([{ resource: "tasks", permissions: [some[2]] }]);
    expect(groupPermissions(some, "apps.")).toHaveLength(1);
    expect(groupPermissions(some, "nothing")).toEqual([]);
  });
});

test("the platform's own permissions are those that docs/permissions.md marks", () => {
  const table = readFileSync("../docs/permissions.md", "utf8");
  const marked = [...table.matchAll(/^\| `([a-z_.]+)` \| [^|]*\(platform only\)/gm)].map(([, name]) => name);
  expect([...PLATFORM_ONLY].sort()).toEqual(marked.sort());
});
