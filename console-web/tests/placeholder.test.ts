import { expect, it } from "vitest";
import { ofTenant } from "../src/lib/placeholder";

it("shows no tenant what another one's page has shown", () => {
  const asked = (tenant?: string) => ({ queryKey: ["get", "/fires/coming", { params: { query: { tenant } } }] });
  expect(ofTenant("demo")("figures", asked("demo"))).toBe("figures");
  expect(ofTenant("demo")("figures", asked("retail"))).toBeUndefined();
  expect(ofTenant("demo")("figures", asked())).toBeUndefined();
  expect(ofTenant(undefined)("figures", asked("demo"))).toBeUndefined();
  expect(ofTenant(undefined)("figures", asked())).toBe("figures");
  expect(ofTenant(undefined)("figures", undefined)).toBeUndefined();
});
