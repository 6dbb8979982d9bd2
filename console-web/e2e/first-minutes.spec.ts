/** A newcomer's first five minutes, with the console alone: from the given password to the result of a run. */
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import en from "../src/i18n/en";
import { openWindow, startBrowser, type Watched } from "./harness/browser";
import { choose, dialog, keepSecret, like, wrong } from "./harness/words";
import { got, World, type AppKey } from "./harness/world";

const { common, people, executors, admin, tasks, schedule } = en;
const PASSWORD = "Nine-Bells-Ring-2";

let world: World;
let browser: Browser;
let window: Watched;
let page: Page;
/** Read from the page, as a person does. */
let key: AppKey;

beforeAll(async () => {
  [world, browser] = await Promise.all([World.start(), startBrowser()]);
  window = await openWindow(browser, world);
  page = await window.open("/");
});

afterAll(async () => {
  await browser.close();
  await world.end();
});

async function goTo(name: string): Promise<void> {
  await page.getByRole("navigation", { name: common.menu }).getByRole("link", { name, exact: true }).click();
  await page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
}

/** A field of a form by its label; required ones have a mark in it. */
function field(within: Page | Locator, label: string): Locator {
  return within.getByLabel(label, { exact: true });
}

it("signs in, and has to choose another password", async () => {
  await page.getByRole("heading", { name: people.sign_in.title }).waitFor();
  await page.getByText(people.sign_in.first).waitFor();
  await window.signIn({ name: "admin", password: "not-this-one-either" });
  await page.getByRole("alert").filter({ hasText: people.sign_in.wrong }).waitFor();
  await window.signIn({ name: "admin", password: World.FIRST_PASSWORD });
  await page.getByRole("heading", { name: people.new_password.title }).waitFor();
  expect(await window.axe()).toEqual([]);

  const change = async (current: string, next: string, again: string) => {
    await field(page, people.new_password.current).fill(current);
    await field(page, people.new_password.next).fill(next);
    await field(page, people.new_password.again).fill(again);
    await page.getByRole("button", { name: people.new_password.submit }).click();
  };
  await change(World.FIRST_PASSWORD, "short", "short");
  await wrong(field(page, people.new_password.next)).waitFor();
  await change(World.FIRST_PASSWORD, PASSWORD, `${PASSWORD}3`);
  await page.getByText(people.new_password.different).waitFor();
  await change("not-this-one-either", PASSWORD, PASSWORD);
  // What the node refuses stands at the field, too.
  await wrong(field(page, people.new_password.current)).waitFor();
  await window.picture("first-minutes-password");
  expect(await window.axe()).toEqual([]);
  // Nothing of that has changed it: without the right one there is no console.
  expect(await page.locator("#content").count()).toBe(0);
  await change(World.FIRST_PASSWORD, PASSWORD, PASSWORD);
  await page.getByRole("heading", { level: 1, name: common.pages.overview }).waitFor();
  await window.settled();
  await page.getByText(en.overview.verdict.nothing_yet).waitFor();
  await window.picture("first-minutes-overview");
});

it("makes a tenant and an app, and is shown its key once", async () => {
  await goTo(common.pages.tenants);
  await page.getByText(admin.tenants.empty).waitFor();
  await page.getByRole("button", { name: admin.tenants.create }).click();
  const tenant = dialog(page, admin.tenants.create_title);
  await field(tenant, common.name).fill("no spaces");
  await tenant.getByRole("button", { name: common.create }).click();
  await tenant.getByText(admin.tenants.name_rule).waitFor();
  await field(tenant, common.name).fill("tower");
  await tenant.getByRole("button", { name: common.create }).click();
  await page.getByRole("link", { name: "tower", exact: true }).waitFor();
  await tenant.waitFor({ state: "hidden" });

  await goTo(common.pages.apps);
  await page.getByRole("button", { name: executors.apps.create }).click();
  const app = dialog(page, executors.apps.create_title);
  await field(app, common.name).fill("bells");
  expect(await window.axe()).toEqual([]);
  await window.picture("first-minutes-app");
  await app.getByRole("button", { name: common.create }).click();
  const secret = dialog(page, executors.keys.secret_title);
  await secret.waitFor();
  expect(await window.axe()).toEqual([]);
  await window.picture("first-minutes-key");
  const variables = new Map((await secret.locator("pre").innerText()).split("\n").map((line) => line.split(/=(.*)/s) as [string, string]));
  const read = (name: string) => variables.get(`CARILLON_${name}`) ?? "";
  const apps = got(await world.api.GET("/apps")).items;
  key = { tenant: read("TENANT"), app: read("APP"), keyId: read("KEY_ID"), secret: read("KEY_SECRET"), appId: apps[0]?.id ?? "" };
  expect(key).toMatchObject({ tenant: "tower", app: "bells" });
  expect(await keepSecret(page, executors.keys.secret_title)).toBe(key.secret);
  await page.getByRole("heading", { level: 1, name: "bells" }).waitFor();
  await window.settled();
  expect(await page.locator("body").innerText()).toContain(key.keyId);
  expect(await page.locator("body").innerText()).not.toContain(key.secret);
});

it("sees the executor that has this key come online", async () => {
  await goTo(common.pages.executors);
  await page.getByText(executors.executors.empty_steps).waitFor();
  const wasLoaded = await page.evaluate(() => performance.timeOrigin);
  await world.executor(key);
  const row = page.getByRole("row").filter({ hasText: "bells" });
  await row.getByText(executors.executors.state.online).waitFor();
  expect(await page.evaluate(() => performance.timeOrigin)).toBe(wasLoaded);
});

it("makes a task that fires every five seconds, and sees its runs", async () => {
  await goTo(common.pages.tasks);
  await page.getByRole("button", { name: tasks.list.create }).click();
  await page.getByRole("heading", { level: 1, name: tasks.editor.new_title }).waitFor();
  await choose(page, page.getByRole("combobox", { name: tasks.fields.label.app }), "tower / bells");
  await field(page, tasks.fields.label.name).fill("small bell");
  await field(page, tasks.fields.label.handler).fill("echo");
  await field(page, tasks.fields.label.params).fill('{"strokes":3}');
  await page.getByText(tasks.params_are.json).waitFor();
  await page.getByRole("radiogroup", { name: schedule.kind.label }).getByText(schedule.kind.every).click();
  await choose(page, page.getByRole("combobox", { name: schedule.builder.unit, exact: true }), schedule.builder.second);
  await choose(page, page.getByRole("combobox", { name: schedule.builder.every, exact: true }), "5");
  const preview = page.getByRole("region", { name: schedule.preview.title });
  await preview.locator("time").nth(9).waitFor();
  await page.waitForFunction(() => {
    const times = [...document.querySelectorAll("section[aria-labelledby=preview] time")].map((each) => Date.parse(each.getAttribute("datetime") ?? ""));
    return times.length === 10 && times.every((at, index) => index === 0 || at - (times[index - 1] ?? 0) === 5_000);
  });
  await page.getByText("every 5 seconds").waitFor();
  expect(await window.axe()).toEqual([]);
  await window.picture("first-minutes-editor");
  await page.getByRole("button", { name: tasks.editor.create, exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "small bell" }).waitFor();
  const made = got(await world.api.GET("/tasks", { params: { query: { tenant: "tower", state: "started" } } })).items;
  expect(made.map(({ name, cron }) => [name, cron])).toEqual([["small bell", "0/5 * * * * ?"]]);

  // Its runs come in by themselves.
  const strip = page.getByRole("list", { name: en.task.strip.title });
  await strip.getByRole("link", { name: common.log_status.succeeded }).nth(1).waitFor();
  await window.picture("first-minutes-task");
});

it("opens a run, reads its result, and signs out", async () => {
  await page.getByRole("list", { name: en.task.strip.title }).getByRole("link", { name: common.log_status.succeeded }).last().click();
  await page.getByRole("heading", { level: 1, name: like(en.logs.title) }).waitFor();
  await page.getByRole("heading", { name: en.logs.result, exact: true }).waitFor();
  const result = page.getByLabel(en.logs.result, { exact: true });
  expect(await result.innerText()).toContain('{"strokes":3}');
  await window.picture("first-minutes-run");
  const address = new URL(page.url()).pathname;

  await page.getByRole("button", { name: like(`${common.own_account}: {{name}}`) }).click();
  await page.getByRole("menuitem", { name: common.sign_out }).click();
  await page.getByRole("heading", { name: people.sign_in.title }).waitFor();
  await window.open(address);
  await page.getByRole("heading", { name: people.sign_in.title }).waitFor();
  expect(await page.locator("#content").count()).toBe(0);
  // The session itself is over, not only what the page knew of it.
  expect(await page.evaluate(async () => (await fetch("/api/v1/session")).status)).toBe(401);
  await window.signIn({ name: "admin", password: PASSWORD });
  await page.getByRole("heading", { level: 1, name: like(en.logs.title) }).waitFor();
  expect(window.faults).toEqual([]);
});
