/** Names, parameters, messages and output of tasks are text, whatever they hold. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startBrowser, windowOf } from "./harness/browser";
import { got, World, type Person } from "./harness/world";

let world: World;
let browser: Browser;
let admin: Person;

const MARK = "window.__hostile=(window.__hostile||0)+1";
const HOSTILE = [
  `<img src=x onerror="${MARK}">`,
  `<script>${MARK}</script>`,
  `</pre></div><svg onload="${MARK}">`,
  `<a href="javascript:${MARK}">click</a>`,
  `{{constructor.constructor('${MARK}')()}}`,
  `$t(common:save)`,
  "\u202egnp.exe",
  "\u001b[31mred\u001b[0m",
].join(" ");

beforeAll(async () => {
  [world, browser] = await Promise.all([World.start(), startBrowser()]);
  admin = await world.admin();
});

afterAll(async () => {
  await browser.close();
  await world.end();
});

it("nothing of it is ever obeyed", async () => {
  const key = await world.app("demo", "bells");
  await world.executor(key);
  const name = `<img src=x onerror="${MARK}"> {{name}} $t(save)`;
  const tasks = await world.tasks(key, [
    { name, handler: "echo", schedule: "none", params: HOSTILE, description: HOSTILE, started: true },
    { name: "talks", handler: "talk", schedule: "none", params: JSON.stringify({ lines: 20, text: HOSTILE, fail: true }), max_retries: 0, started: true },
    { name: "wide", handler: "talk", schedule: "none", params: JSON.stringify({ lines: 1, width: 200_000 }), started: true },
  ]);
  const body = { at: null, delay_ms: null, idempotency_key: null, priority: null };
  const logs: string[] = [];
  for (const id of tasks.values()) logs.push(got(await world.api.POST("/tasks/{id}/run", { params: { path: { id } }, body })).log);
  for (const [index, id] of [...tasks.values()].entries()) await world.log(id, index === 1 ? "failed" : "succeeded");
  await world.api.PATCH("/apps/{id}", { params: { path: { id: key.appId } }, body: { description: HOSTILE } });

  const window = await windowOf(browser, world, admin);
  const echo = tasks.get(name) ?? "";
  const pages = ["/", "/tasks?tenant=demo", `/tasks/${echo}`, `/tasks/${echo}/edit`, "/logs?tenant=demo", ...logs.map((log) => `/logs/${log}`), "/apps", `/apps/${key.appId}`, "/audit"];
  const isUnharmed = async (page: Page, address: string) => {
    expect(await page.evaluate(() => (window as unknown as { __hostile?: number }).__hostile), address).toBeUndefined();
    // What the text holds must not have become an element.
    expect(await page.locator("img[src=x], svg[onload], a[href^='javascript']").count(), address).toBe(0);
    expect(window.faults, address).toEqual([]);
  };
  for (const address of pages) {
    const page = await window.open(address);
    await window.settled();
    await isUnharmed(page, address);
  }
  const page = await window.open(`/logs/${logs[1] ?? ""}`);
  await page.getByText(/line 1 of 20/).first().waitFor();
  const shown = await page.locator("#content").innerText();
  expect(shown).toContain("<img src=x onerror=");
  expect(shown).toContain("{{constructor.constructor(");
  await isUnharmed(page, "output");
  await window.picture("hostile-output");
  await window.context.close();
});
