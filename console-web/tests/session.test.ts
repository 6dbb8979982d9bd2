import { describe, expect, it } from "vitest";
import { may, mayWhole, tenantsOf, type Me } from "../src/api/session";

const platform: Me["access"] = [{ permissions: ["tasks.read", "nodes.read"], apps: [], tenant: null, tenant_id: null }];
const retail: Me["access"] = [{ permissions: ["tasks.read", "tasks.run"], apps: [], tenant: "retail", tenant_id: "1" }];
const orders: Me["access"] = [{ permissions: ["tasks.run"], apps: ["7"], tenant: "retail", tenant_id: "1" }];

describe("may", () => {
  it("denies what is not granted", () => {
    expect(may([], "tasks.read")).toBe(false);
    expect(may(retail, "tasks.edit")).toBe(false);
    expect(may(retail, "tasks.read", { tenant: "finance" })).toBe(false);
    expect(may(retail, "tasks.read", { tenant: null })).toBe(false);
  });

  it("allows on the platform whatever the place", () => {
    expect(may(platform, "tasks.read", { tenant: "retail", app: "7" })).toBe(true);
    expect(may(platform, "nodes.read", { tenant: null })).toBe(true);
    expect(may(platform, "tasks.run", { tenant: "retail" })).toBe(false);
  });

  it("knows grants that are narrowed to apps", () => {
    expect(may(orders, "tasks.run", { tenant: "retail", app: "7" })).toBe(true);
    expect(may(orders, "tasks.run", { tenant: "retail", app: "8" })).toBe(false);
    expect(may(orders, "tasks.run", { tenant: "retail" })).toBe(true);
    expect(mayWhole(orders, "tasks.run", "retail")).toBe(false);
    expect(mayWhole(retail, "tasks.run", "retail")).toBe(true);
    expect(mayWhole(platform, "nodes.read", null)).toBe(true);
    expect(mayWhole(orders, "tasks.run", undefined)).toBe(false);
    expect(mayWhole(retail, "tasks.run", undefined)).toBe(true);
  });
});

it("names each tenant once, in order", () => {
  expect(tenantsOf([...retail, ...orders, ...platform, { permissions: [], apps: [], tenant: "finance", tenant_id: "2" }])).toEqual(["finance", "retail"]);
});
