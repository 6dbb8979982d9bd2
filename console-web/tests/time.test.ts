import { describe, expect, it } from "vitest";
import { fromWallClock, instant, offset, span } from "../src/lib/time";

const AT = Date.UTC(2026, 0, 31, 1, 2, 3, 45);

describe("instant", () => {
  it("is written in the zone that was asked for", () => {
    expect(instant(AT, "UTC")).toBe("2026-01-31 01:02:03");
    expect(instant(AT, "Asia/Shanghai")).toBe("2026-01-31 09:02:03");
    expect(instant(AT, "America/New_York", "minute")).toBe("2026-01-30 20:02");
    expect(instant(AT, "UTC", "millisecond")).toBe("2026-01-31 01:02:03.045");
  });

  it("calls midnight 00, not 24", () => {
    expect(instant(Date.UTC(2026, 5, 1), "UTC")).toBe("2026-06-01 00:00:00");
  });
});

describe("offset", () => {
  it("knows summer time, half hours and UTC", () => {
    expect(offset(Date.UTC(2026, 0, 1), "Europe/Berlin")).toBe("+01:00");
    expect(offset(Date.UTC(2026, 6, 1), "Europe/Berlin")).toBe("+02:00");
    expect(offset(AT, "Asia/Kolkata")).toBe("+05:30");
    expect(offset(AT, "UTC")).toBe("+00:00");
  });
});

describe("span", () => {
  it.each([
    [0, "0 ms"],
    [4.4, "4 ms"],
    [999, "999 ms"],
    [1_250, "1.25 s"],
    [12_340, "12.3 s"],
    [60_000, "1 min"],
    [200_000, "3 min 20 s"],
    [7_200_000, "2 h"],
    [187_200_000, "2 d 4 h"],
    [-1_500, "-1.5 s"],
    [-90_000, "-1 min 30 s"],
  ])("%d ms is %s", (ms, text) => expect(span(ms)).toBe(text));
});

describe("fromWallClock", () => {
  it("undoes instant", () => {
    for (const zone of ["UTC", "Asia/Shanghai", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]) {
      expect(fromWallClock(instant(AT, zone).replace(" ", "T"), zone)).toBe(Math.floor(AT / 1_000) * 1_000);
    }
  });

  it("takes the earlier of two where clocks are set back", () => {
    expect(fromWallClock("2026-10-25T02:30:00", "Europe/Berlin")).toBe(Date.UTC(2026, 9, 25, 0, 30));
  });

  it("refuses what is no time", () => expect(fromWallClock("soon", "UTC")).toBeUndefined());
});
