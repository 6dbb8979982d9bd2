import { describe, expect, it } from "vitest";
import { beginning, visible } from "../src/lib/rawText";

describe("text of runs", () => {
  it("loses what only a terminal understands", () => {
    expect(visible("\u001b[1;31mError\u001b[0m: \u001b[2K\u001b]0;title\u0007x\u001b]8;;http://a\u001b\\link\u001b(B")).toBe("Error: xlink");
  });

  it("shows control characters as pictures, and keeps breaks and tabs", () => {
    expect(visible("a\u0000b\u0007c\u007f\td\r\ne\rf\u001b")).toBe("a␀b␇c␡\td\ne␍f␛");
  });

  it("shows what would change the order of characters", () => {
    expect(visible("user\u202egpj.exe\u2066x\u2069")).toBe("user‹U+202E›gpj.exe‹U+2066›x‹U+2069›");
  });

  it("leaves markup as it is: React shows it as text", () => {
    const hostile = `<img src=x onerror=alert(1)></script><script>alert(2)</script>{{constructor}}`;
    expect(visible(hostile)).toBe(hostile);
  });

  it("takes time in proportion, whatever comes", () => {
    // The processor's time, not the clock's: the machine may do other things meanwhile. Linear work takes a hundredth of it,
    // quadratic work many times as much.
    const begun = process.cpuUsage();
    for (const unit of ["\u001b[", "\u001b]", "\u001b[0;", "\u001b", "\r"]) visible(unit.repeat(300_000));
    expect(process.cpuUsage(begun).user).toBeLessThan(20_000_000);
  });

  it("is cut between characters", () => {
    expect(beginning("ab😀", 3)).toBe("ab");
    expect(beginning("ab😀", 4)).toBe("ab😀");
    expect(beginning("ab", 4)).toBe("ab");
  });
});
