import { describe, expect, test } from "vitest";
import { Problem } from "../src/api/client";
import { auditQuery } from "../src/lib/auditFilters";
import { pageOf } from "../src/lib/auditTargets";
import { fillOf, percentOf } from "../src/lib/quotas";
import { refusalOf } from "../src/lib/refusals";
import { examples, isExpiry, lifeOf, afterDays } from "../src/lib/tokens";
import { turns } from "../src/lib/turns";
import { touches } from "../src/lib/users";

const DAY = 86_400_000;

describe("refusals in plain words", () => {
  test.each([
    ["beyond_own", { permissions: "tasks.edit, nodes.read" }, { key: "beyond_grant", values: { what: "tasks.edit, nodes.read" } }],
    ["user_above_caller", {}, { key: "beyond_user", values: { what: "" } }],
    ["still_has", { what: "apps" }, { key: "tenant_in_use", values: { what: "apps" } }],
    ["role_granted", { users: "ann, bob" }, { key: "role_granted", values: { what: "ann, bob" } }],
    ["last_admin", {}, { key: "last_admin", values: { what: "" } }],
  ])("%s", (code, params, refusal) => {
    expect(refusalOf(new Problem(409, code, "in English", [], params))).toEqual(refusal);
  });

  test("all else is left to others", () => {
    expect(refusalOf(new Problem(409, "changed_meanwhile", "it still has apps"))).toBeUndefined();
    expect(refusalOf(new Error("it still has apps"))).toBeUndefined();
  });
});

describe("quotas", () => {
  test("0 is no bound; what is overdrawn is full", () => {
    expect(fillOf(5, 0)).toBe("none");
    expect(fillOf(7, 10)).toBe("room");
    expect(fillOf(8, 10)).toBe("nearly");
    expect(fillOf(10, 10)).toBe("full");
    expect(fillOf(30, 10)).toBe("full");
  });

  test("a bar has at most 100 percent", () => {
    expect([percentOf(0, 0), percentOf(1, 3), percentOf(30, 10)]).toEqual([0, 33, 100]);
  });
});

describe("tokens", () => {
  test("are void at their end, and soon a week before", () => {
    expect(lifeOf(1_000, 1_000)).toBe("void");
    expect(lifeOf(1_001, 1_000)).toBe("soon");
    expect(lifeOf(7 * DAY, 0)).toBe("soon");
    expect(lifeOf(7 * DAY + 1, 0)).toBe("valid");
  });

  test("end in time to come, within ten years", () => {
    expect(isExpiry(5, 5)).toBe(false);
    expect(isExpiry(6, 5)).toBe(true);
    expect(isExpiry(afterDays(3_650, 5), 5)).toBe(true);
    expect(isExpiry(afterDays(3_651, 5), 5)).toBe(false);
  });

  test("are used from a file: none is an argument", () => {
    expect(examples("https://node:1")).toContain("carillon --url https://node:1 --token-file");
    expect(examples("https://node:1")).toContain("Authorization: Bearer $(cat");
  });
});

describe("users", () => {
  const user = {
    id: "9", name: "ann", display_name: "Ann Lee", tenant_id: "1", disabled: false, must_change_password: false, has_password: true,
    revision: 1, created_at: 0, updated_at: 0, grants: [{ id: "g", role: "viewer", role_id: "4", tenant_id: "2", apps: [], from_group: false }],
  };

  test("belong to a tenant by their account, a grant there, or one on the platform", () => {
    expect(touches(user, "1")).toBe(true);
    expect(touches(user, "2")).toBe(true);
    expect(touches(user, "3")).toBe(false);
    expect(touches({ ...user, grants: [{ id: "g", role: "x", role_id: "5", tenant_id: null, apps: [], from_group: false }] }, "3")).toBe(true);
  });
});

describe("what the address asks of the audit", () => {
  test("the chosen tenant goes before the scope", () => {
    expect(auditQuery({ scope: "-" }, "demo")).toEqual({ tenant: "demo" });
    expect(auditQuery({ scope: "-" }, undefined)).toEqual({ tenant: "-" });
    expect(auditQuery({ scope: "77" }, undefined)).toEqual({ tenant_id: "77" });
  });

  test("instants that are none are left out", () => {
    expect(auditQuery({ from: "12", until: "soon", kind: "task" }, undefined)).toEqual({ from: 12, kind: "task" });
    expect(auditQuery({ from: "-1", until: "1.5" }, undefined)).toEqual({});
  });

  test("what an entry is about has a page, or none", () => {
    expect(pageOf("task", "7", "x")).toEqual({ path: "/tasks/7" });
    expect(pageOf("tenant", "7", "demo")).toEqual({ path: "/quotas", search: { tenant: "demo" } });
    expect(pageOf("token", "7", "x")).toBeUndefined();
  });
});

describe("turns", () => {
  test("no more than so many go on at once, and all are done in order, failures too", async () => {
    const take = turns(2);
    let running = 0;
    let most = 0;
    const begun: number[] = [];
    const work = (index: number) =>
      take(async () => {
        begun.push(index);
        most = Math.max(most, ++running);
        await new Promise((done) => setTimeout(done, 5));
        running -= 1;
        if (index === 1) throw new Error("no");
        return index;
      });
    const done = await Promise.allSettled([0, 1, 2, 3, 4].map(work));
    expect(done.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled", "fulfilled"]);
    expect(begun).toEqual([0, 1, 2, 3, 4]);
    expect(most).toBe(2);
    // All places are free again.
    await expect(take(() => Promise.resolve("free"))).resolves.toBe("free");
  });
});
