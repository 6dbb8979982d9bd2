import { describe, expect, it } from "vitest";
import { environmentOf } from "../src/lib/environment";
import { loadOf, stateOf } from "../src/lib/executor";

describe("an executor", () => {
  it("says first that it leaves, then that it is disabled, then its weight", () => {
    expect(stateOf({ draining: false, disabled: false, weight: 1 })).toBe("online");
    expect(stateOf({ draining: true, disabled: true, weight: 0 })).toBe("draining");
    expect(stateOf({ draining: false, disabled: true, weight: 0 })).toBe("disabled");
    expect(stateOf({ draining: false, disabled: false, weight: 0 })).toBe("weightless");
  });

  it("fills its bar with what runs, then with what is held, to the brim and no further", () => {
    expect(loadOf({ capacity: 64, running: 16, held: 16 })).toEqual({ running: 25, held: 25 });
    expect(loadOf({ capacity: 10, running: 8, held: 500 })).toEqual({ running: 80, held: 20 });
    expect(loadOf({ capacity: 10, running: 12, held: 1 })).toEqual({ running: 100, held: 0 });
    expect(loadOf({ capacity: 0, running: 0, held: 0 })).toEqual({ running: 0, held: 0 });
  });
});

describe("the environment of an executor", () => {
  const access = { schedulers: ["http://10.0.0.1:8526", "http://10.0.0.2:8526"], tenant: "retail", app: "orders", key: { id: "ck_1", secret: "s" }, signMethod: "" };

  it("names what the SDK reads, and the signing method only where the app demands one", () => {
    expect(environmentOf(access).split("\n")).toEqual([
      "CARILLON_SCHEDULERS=http://10.0.0.1:8526,http://10.0.0.2:8526",
      "CARILLON_TENANT=retail",
      "CARILLON_APP=orders",
      "CARILLON_KEY_ID=ck_1",
      "CARILLON_KEY_SECRET=s",
    ]);
    expect(environmentOf({ ...access, signMethod: "MD5" }).split("\n").at(-1)).toBe("CARILLON_SIGN_METHOD=MD5");
  });
});
