import { expect, it } from "vitest";
import { ofSame } from "../src/lib/placeholder";

it("shows no tenant what another one's page has shown", () => {
  const asked = (tenant?: string) => ({ queryKey: ["get", "/fires/upcoming", { params: { query: { tenant } } }] });
  expect(ofSame({ tenant: "demo" })("figures", asked("demo"))).toBe("figures");
  expect(ofSame({ tenant: "demo" })("figures", asked("retail"))).toBeUndefined();
  expect(ofSame({ tenant: "demo" })("figures", asked())).toBeUndefined();
  expect(ofSame({ tenant: undefined })("figures", asked("demo"))).toBeUndefined();
  expect(ofSame({ tenant: undefined })("figures", asked())).toBe("figures");
  expect(ofSame({ tenant: undefined })("figures", undefined)).toBeUndefined();
});
