import { describe, expect, it } from "vitest";
import { findSettings, isClockOff, isHeld, mixedVersions, nodeState } from "../src/lib/nodes";

describe("nodes", () => {
  it("tells who left from who is away", () => {
    expect(nodeState({ online: true, left_at: null, started_at: 1 })).toBe("online");
    expect(nodeState({ online: false, left_at: 5, started_at: 1 })).toBe("left");
    expect(nodeState({ online: false, left_at: null, started_at: 1 })).toBe("away");
  });

  it("minds clocks beyond 100 ms, either way, where they are known", () => {
    expect([100, -100, 0, null, undefined].some(isClockOff)).toBe(false);
    expect(isClockOff(101)).toBe(true);
    expect(isClockOff(-101)).toBe(true);
  });

  it("takes a lease for held until its time is over", () => {
    expect(isHeld({ node: "1", expires_at: 11 }, 10)).toBe(true);
    expect(isHeld({ node: "1", expires_at: 10 }, 10)).toBe(false);
    expect(isHeld({ node: null, expires_at: 11 }, 10)).toBe(false);
    expect(isHeld({ node: "1", expires_at: null }, 10)).toBe(false);
  });

  it("names versions only where several run", () => {
    const node = (version: string, online = true) => ({ version, online });
    expect(mixedVersions([node("0.1.0"), node("0.1.0"), node("0.0.9", false)])).toEqual([]);
    expect(mixedVersions([node("0.2.0"), node("0.1.0")])).toEqual(["0.1.0", "0.2.0"]);
  });
});

describe("settings", () => {
  const settings = [
    { name: "schedulers.time_zone", value: "UTC" },
    { name: "database.url", value: "sqlite://data/carillon.db" },
  ];

  it("are found by name and value, by every word", () => {
    expect(findSettings(settings, "utc").map((each) => each.name)).toEqual(["schedulers.time_zone"]);
    expect(findSettings(settings, " database  SQLITE ").map((each) => each.name)).toEqual(["database.url"]);
    expect(findSettings(settings, "database utc")).toEqual([]);
    expect(findSettings(settings, "")).toEqual(settings);
  });
});
