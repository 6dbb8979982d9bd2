import { describe, expect, it } from "vitest";
import { heatRows, shade } from "../src/lib/heat";

describe("the heat map", () => {
  it("has a row for each hour of the viewer's clock", () => {
    const from = Date.UTC(2026, 0, 31, 8, 58);
    const rows = heatRows(from, [1, 2, 3], "Asia/Kolkata");
    expect(rows.map(({ label }) => label)).toEqual(["14:00"]);
    expect(rows[0]?.cells.slice(28, 31)).toEqual([1, 2, 3]);
    const cut = heatRows(from, [1, 2, 3], "UTC");
    expect(cut.map(({ label, cells }) => [label, cells[58], cells[0]])).toEqual([["08:00", 1, undefined], ["09:00", undefined, 3]]);
  });
  it("keeps an hour that comes twice apart", () => {
    // Berlin, the end of summer time: 02:00 to 03:00 twice.
    const rows = heatRows(Date.UTC(2026, 9, 25, 0), Array.from({ length: 180 }, () => 1), "Europe/Berlin");
    expect(rows.map(({ label }) => label)).toEqual(["02:00", "02:00", "03:00"]);
  });
  it("shades few beside many", () => {
    expect([shade(0, 1_000), shade(1, 1_000), shade(1_000, 1_000), shade(1, 1)]).toEqual([0, 1, 5, 5]);
    expect(shade(30, 1_000)).toBeGreaterThan(1);
  });
});
