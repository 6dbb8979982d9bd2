/** Every page, light and dark, wide and narrow, in both languages: pictures, axe-core, and nothing that must not be. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PERMISSIONS } from "../src/api/permissions";
import { PAGES } from "../src/app/pages";
import { ARTEFACTS, openWindow, startBrowser, windowOf, type Look } from "./harness/browser";
import { faultsIn } from "./harness/faults";
import { got, World, type Person } from "./harness/world";
import { makeScene, places } from "./scene";

let world: World;
let browser: Browser;
let admin: Person;
let all: Record<string, string>;
/** Names that pages show and that look like keys of texts. */
let names: Set<string>;

beforeAll(async () => {
  [world, browser] = await Promise.all([World.start(), startBrowser()]);
  admin = await world.admin();
  const scene = await makeScene(world);
  await world.person("vera", "viewer", "demo");
  const users = got(await world.api.GET("/users")).items;
  const settings = got(await world.api.GET("/settings", { params: { query: { limit: 500 } } })).items;
  names = new Set([...PERMISSIONS, ...settings.map((setting) => setting.name)]);
  all = places(scene, users.find((user) => user.name === "vera")?.id ?? "");
});

afterAll(async () => {
  await browser.close();
  await world.end();
});

const LOOKS: Look[] = [
  { theme: "light", language: "en" },
  { theme: "dark", language: "zh", width: 390, height: 844 },
];
/** The other pairs of what those two show already: `./scripts/test --long`. */
const FURTHER: Look[] = [
  { theme: "dark", language: "zh" },
  { theme: "light", language: "zh", width: 390, height: 844 },
  { theme: "dark", language: "en", width: 390, height: 844 },
];

it("knows every page there is", () => {
  const shown = Object.values(all).map((address) => address.split("?")[0] ?? "");
  for (const { path } of PAGES) {
    const pattern = new RegExp(`^${path.replace(/:[a-z]+/g, "[^/]+")}$`);
    expect(shown.some((address) => pattern.test(address)), path).toBe(true);
  }
});

it("notices what no page may show", () => {
  const bad = ["undefined", "NaN", "Invalid Date", "[object Object]", "{{count}}", "live.try_now", "common:save", "live.no_such_key", "loaded_rows"];
  for (const each of bad) expect(faultsIn(`Before ${each}, after`, names), each).toContain(each);
  expect(faultsIn("tasks.read on 127.0.0.1:8526, p99 1.5 s. Live: 12:30:05.123, a_task of bells", names)).toEqual([]);
});

describe.each(process.env.CARILLON_ALL_LOOKS === "1" ? [...LOOKS, ...FURTHER] : LOOKS)("%o", (look) => {
  const { theme = "light", language = "en", width = 1280 } = look;

  it("the sign-in", async () => {
    const window = await openWindow(browser, world, look);
    const page = await window.open("/");
    await page.locator("button[type=submit]").waitFor();
    await window.picture(`sign-in-${theme}-${language}-${width}`);
    expect(await window.axe()).toEqual([]);
    expect(window.faults).toEqual([]);
    await window.context.close();
  });

  it("every page", async () => {
    const window = await windowOf(browser, world, admin, look);
    const findings: string[] = [];
    for (const [name, address] of Object.entries(all)) {
      const page = await window.open(address);
      await window.settled();
      await window.picture(`${name}-${theme}-${language}-${width}`);
      findings.push(...(await window.axe()).map((finding) => `${name}: ${finding}`));
      const text = await page.locator("body").innerText();
      for (const wrong of faultsIn(text, names)) findings.push(`${name}: shows ${wrong}`);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (overflow > 0) findings.push(`${name}: ${overflow} px wider than the window`);
      findings.push(...window.faults.splice(0).map((fault) => `${name}: ${fault}`));
    }
    writeFileSync(join(ARTEFACTS, `findings-${theme}-${language}-${width}.txt`), findings.join("\n"));
    expect(findings).toEqual([]);
    await window.context.close();
  });
});
