/** What one sees without loading anything again: changes of others, output as it comes, a node that dies. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import en from "../src/i18n/en";
import { show, startBrowser, Watched, windowOf } from "./harness/browser";
import { until } from "./harness/process";
import { got, World, type AppKey, type Person } from "./harness/world";

let world: World;
let browser: Browser;
let admin: Person;
let key: AppKey;

beforeAll(async () => {
  [world, browser] = await Promise.all([World.start(), startBrowser()]);
  admin = await world.admin();
  key = await world.app("demo", "bells");
  await world.executor(key);
});

afterAll(async () => {
  await browser.close();
  await world.end();
});

function mark({ page }: Watched, state: string) {
  return page.locator(`[data-live="${state}"]`);
}

it("shows a task that another user creates", async () => {
  const window = await windowOf(browser, world, admin);
  const page = await window.open("/tasks?tenant=demo");
  await window.settled();
  await mark(window, "connected").waitFor();
  expect(await page.getByRole("link", { name: "made elsewhere" }).count()).toBe(0);
  await world.tasks(key, [{ name: "made elsewhere", handler: "echo", schedule: "none" }]);
  await page.getByRole("link", { name: "made elsewhere" }).waitFor();
  expect(window.faults).toEqual([]);
  await window.context.close();
});

it("follows the output of a run while it runs, and says how it ended", async () => {
  const tasks = await world.tasks(key, [{ name: "talks", handler: "talk", schedule: "none", started: true, params: '{"lines":60,"ms":150}' }]);
  const id = tasks.get("talks") ?? "";
  const window = await windowOf(browser, world, admin);
  const { log } = got(await world.api.POST("/tasks/{id}/run", { params: { path: { id } }, body: { at: null, delay_ms: null, idempotency_key: null, priority: null } }));
  const page = await window.open(`/logs/${log}`);
  await page.getByText(/line 5 of 60/).waitFor();
  // It came while the run went on: not all of it at its end.
  expect(await page.getByText(/line 60 of 60/).count()).toBe(0);
  await page.getByText(/line 60 of 60/).waitFor();
  await page.locator("#content").getByText(en.common.log_status.succeeded).first().waitFor();
  expect(window.faults).toEqual([]);
  await window.context.close();
});

it("works in any number of tabs: those that are hidden hold no connection", async () => {
  const id = (await world.tasks(key, [{ name: "tab one", handler: "talk", schedule: "none", started: true, params: '{"lines":2000,"ms":100}' }])).get("tab one") ?? "";
  const body = { at: null, delay_ms: null, idempotency_key: null, priority: null };
  const { log } = got(await world.api.POST("/tasks/{id}/run", { params: { path: { id } }, body }));
  const window = await windowOf(browser, world, admin);
  const list = "/tasks?tenant=demo&search=tab";
  const first = await window.open(list);
  await first.getByRole("link", { name: "tab one" }).waitFor();
  await mark(window, "connected").waitFor();
  await window.settled();
  await show(first, "hidden");
  const askedInSecret: string[] = [];
  first.on("request", (request) => askedInSecret.push(request.url()));
  // More than the six connections that a browser opens to a node, each with two streams.
  for (let tabs = 2; tabs < 8; tabs++) {
    const tab = new Watched(await window.context.newPage(), window.context, world);
    await tab.open(`/logs/${log}`);
    await mark(tab, "connected").waitFor();
    await tab.page.getByText(/line \d+ of 2000/).first().waitFor();
    await show(tab.page, "hidden");
    expect(tab.faults).toEqual([]);
  }
  const eighth = new Watched(await window.context.newPage(), window.context, world);
  await eighth.open(list);
  await eighth.page.getByRole("link", { name: "tab one" }).waitFor();
  await mark(eighth, "connected").waitFor();
  // Changes made while the page was hidden are there when it is shown again.
  await world.tasks(key, [{ name: "tab two", handler: "echo", schedule: "none" }]);
  await eighth.page.getByRole("link", { name: "tab two" }).waitFor();
  expect(askedInSecret).toEqual([]);
  expect(await first.getByRole("alert").count()).toBe(0);
  expect(await first.getByRole("link", { name: "tab two" }).count()).toBe(0);
  await show(first, "visible");
  await first.getByRole("link", { name: "tab two" }).waitFor();
  await mark(window, "connected").waitFor();
  expect([...window.faults, ...eighth.faults]).toEqual([]);
  await window.context.close();
});

it("says that the node is gone, and comes back with it by itself", async () => {
  const window = await windowOf(browser, world, admin);
  const { page } = window;
  await mark(window, "connected").waitFor();
  await world.endNode("SIGKILL");
  const banner = page.getByRole("alert").filter({ hasText: "Disconnected" });
  await banner.waitFor();
  await world.startNode();
  await mark(window, "connected").waitFor();
  await banner.waitFor({ state: "hidden" });
  await window.context.close();
});

/** From now on the page drops every timer of half a second or more: what still happens was asked for. */
async function forgetTimers(page: Page) {
  await page.evaluate(() => {
    const soon = window.setTimeout.bind(window);
    window.setTimeout = ((work: () => void, ms = 0) => (ms < 500 ? soon(work, ms) : 0)) as typeof window.setTimeout;
  });
}

it("tries at once when it is told to", async () => {
  const window = await windowOf(browser, world, admin);
  const { page } = window;
  await mark(window, "connected").waitFor();
  await forgetTimers(page);
  await world.endNode("SIGKILL");
  await mark(window, "disconnected").waitFor();
  await page.getByRole("alert").filter({ hasText: "Disconnected" }).waitFor();
  await window.picture("disconnected");
  expect(await window.axe()).toEqual([]);
  await world.startNode();
  await page.getByRole("button", { name: en.common.live.try_now }).click();
  await mark(window, "connected").waitFor();
  await until("the banner to go", async () => (await page.getByRole("alert").filter({ hasText: "Disconnected" }).count()) === 0);
  await window.context.close();
});

it("asks who one is when the session was ended elsewhere", async () => {
  const otto = await world.person("otto", "operator", "demo");
  const window = await windowOf(browser, world, otto);
  await mark(window, "connected").waitFor();
  const users = got(await world.api.GET("/users")).items;
  const id = users.find((user) => user.name === "otto")?.id ?? "";
  await world.api.DELETE("/users/{id}/sessions", { params: { path: { id } } });
  await window.page.locator("input[autocomplete=current-password]").waitFor();
  await window.context.close();
});
