import { expect, it } from "vitest";
import { keepPolicy, nonce } from "../src/app/policy";

it("gives style elements the nonce, whatever creates them", () => {
  const page = document.implementation.createHTMLDocument("");
  keepPolicy(page, "a-nonce");
  expect(page.createElement("style").nonce).toBe("a-nonce");
  expect(page.createElement("div").nonce).not.toBe("a-nonce");
});

it("leaves a page alone that has no nonce, as in development", () => {
  const page = document.implementation.createHTMLDocument("");
  keepPolicy(page, undefined);
  expect(page.createElement("style").nonce).not.toBe("a-nonce");
});

it("takes the nonce that the node wrote, and not the gap for it", () => {
  const meta = document.createElement("meta");
  meta.name = "csp-nonce";
  document.head.append(meta);
  meta.content = "%CSP_NONCE%";
  expect(nonce()).toBeUndefined();
  meta.content = "given";
  expect(nonce()).toBe("given");
});
