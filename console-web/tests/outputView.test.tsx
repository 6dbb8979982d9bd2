import { render, screen } from "@testing-library/react";
import i18next from "i18next";
import { initReactI18next } from "react-i18next";
import { beforeAll, describe, expect, it } from "vitest";
import en from "../src/i18n/en";
import { append, MAX_CHARS, nothing, type Held } from "../src/lib/output";
import { OutputText } from "../src/pages/logs/OutputText";
import { RawText } from "../src/pages/logs/RawText";

const HOSTILE = `<img src=x onerror="alert(1)"> </script><script>alert(2)</script> &lt;b&gt; \u202egnp.exe \u0000 \u001b[31mred\u001b[0m`;
const SHOWN = `<img src=x onerror="alert(1)"> </script><script>alert(2)</script> &lt;b&gt; ‹U+202E›gnp.exe ␀ red`;

beforeAll(async () => {
  await i18next.use(initReactI18next).init({ lng: "en", defaultNS: "common", resources: { en }, interpolation: { escapeValue: false } });
});

function held(text: string): Held {
  return append(nothing(0), text, text.length);
}

function shown(of: Held, wanted = "") {
  return render(<OutputText held={of} wanted={wanted} current={undefined} />).container;
}

describe("hostile text", () => {
  it("is shown as text by the output, also where a search marks it", () => {
    for (const wanted of ["", "script", "<img"]) {
      const box = shown(held(`${HOSTILE}\nplain\n${HOSTILE}`), wanted);
      expect(box.querySelector("img, script, b")).toBeNull();
      expect(box.textContent).toBe(`${SHOWN}plain${SHOWN}`);
      expect(box.querySelectorAll("mark").length > 0).toBe(wanted !== "");
    }
  });

  it("is shown as text among parameters and results, and copied as it is", () => {
    const { container } = render(<RawText text={HOSTILE} label="Parameters" />);
    expect(container.querySelector("img, script, b")).toBeNull();
    expect(screen.getByRole("region", { name: "Parameters" }).textContent).toBe(SHOWN);
  });
});

describe("huge text", () => {
  it("of one line is drawn in pieces", () => {
    const line = "x".repeat(MAX_CHARS);
    const box = shown(held(`${line}\n`));
    const rows = [...box.querySelectorAll("[data-line]")];
    expect(rows.length).toBeGreaterThan(100);
    expect(Math.max(...rows.map((row) => row.textContent.length))).toBeLessThanOrEqual(2_000);
    expect(box.textContent).toBe(line);
  });

  it("among parameters is cut, and says so", () => {
    render(<RawText text={"y".repeat(200_000)} label="Parameters" />);
    expect(screen.getByRole("region", { name: "Parameters" }).textContent).toHaveLength(50_000);
    expect(screen.getByText(/50000 of 200000 characters/)).toBeTruthy();
  });
});
