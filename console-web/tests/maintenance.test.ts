import { describe, expect, it } from "vitest";
import { planProblem, WINDOW_MS_MAX, windowState } from "../src/lib/maintenance";

describe("a maintenance window", () => {
  it("begins with its first instant and is over at its end", () => {
    const window = { starts_at: 100, ends_at: 200 };
    expect(windowState(window, 99)).toBe("planned");
    expect(windowState(window, 100)).toBe("running");
    expect(windowState(window, 199)).toBe("running");
    expect(windowState(window, 200)).toBe("over");
  });

  it("is refused where the node would refuse it", () => {
    expect(planProblem(undefined, 5, 0)).toBe("range_needed");
    expect(planProblem(5, 5, 0)).toBe("range_needed");
    expect(planProblem(1, 5, 5)).toBe("range_past");
    expect(planProblem(0, WINDOW_MS_MAX + 1, 0)).toBe("range_long");
    expect(planProblem(0, WINDOW_MS_MAX, 0)).toBeUndefined();
    expect(planProblem(1, 10, 5)).toBeUndefined();
  });
});
