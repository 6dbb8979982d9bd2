/** What runs the tasks: executors, apps and their keys, nodes, settings; calendars and maintenance. */
import type { Browser, Locator } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import en from "../src/i18n/en";
import { startBrowser, windowOf } from "./harness/browser";
import { until } from "./harness/process";
import { got, World, type AppKey, type Person } from "./harness/world";
import { choose, dialog, keepSecret, like, say } from "./harness/words";

const { executors: own, keys, apps } = en.executors;
const { editor, calendars, maintenance } = en.calendars;

let world: World;
let browser: Browser;
let admin: Person;
let key: AppKey;
let tasks: Map<string, string>;

beforeAll(async () => {
  [world, browser] = await Promise.all([World.start(), startBrowser()]);
  admin = await world.admin();
  key = await world.app("demo", "bells");
  await world.executor(key);
  await world.executor(key);
  tasks = await world.tasks(key, [
    { name: "echo", handler: "echo", schedule: "none", started: true },
    { name: "every second", handler: "tick", cron: "* * * * * ?", routing: "round", started: true },
  ]);
});

afterAll(async () => {
  await browser.close();
  await world.end();
});

/** Executors of an app that are online. */
async function online(app: string) {
  return got(await world.api.GET("/executors", { params: { query: { tenant: "demo", app } } })).items;
}

/** The executors of the newest runs that have ended. */
async function lastExecutors(count: number) {
  const query = { task: tasks.get("every second") ?? "", status: "succeeded" as const, limit: count };
  return new Set(got(await world.api.GET("/task-logs", { params: { query } })).items.map((log) => log.executor));
}

it("disables an executor with a note: the other one gets the runs, until it is enabled", async () => {
  await until("runs at both", async () => (await lastExecutors(10)).size === 2);
  const [first] = await online("bells");
  const id = first?.id ?? "";
  const address = first?.address ?? "";
  const window = await windowOf(browser, world, admin);
  const page = await window.open("/executors?tenant=demo");
  await page.getByRole("link", { name: address }).click();
  const drawer = dialog(page, say(own.details, { address }));
  await drawer.getByRole("button", { name: own.disable }).click();
  const question = dialog(page, say(own.disable_question, { address }));
  await question.getByLabel(own.disable_note).fill("its disk is <full>");
  expect(await window.axe()).toEqual([]);
  await window.picture("engine-disable");
  await question.getByRole("button", { name: own.disable }).click();
  await page.getByText(own.disabled_done).waitFor();
  await drawer.getByText(own.state.disabled, { exact: true }).waitFor();
  await drawer.getByText("its disk is <full>").waitFor();
  expect((await online("bells")).find((each) => each.id === id)).toMatchObject({ disabled: true, note: "its disk is <full>" });
  await until("only the other one's runs", async () => {
    const used = await lastExecutors(4);
    return used.size === 1 && !used.has(id);
  });
  await drawer.getByRole("button", { name: own.enable }).click();
  await page.getByText(own.enabled_done).waitFor();
  await drawer.getByText(own.state.online, { exact: true }).waitFor();
  await until("runs at both again", async () => (await lastExecutors(4)).size === 2);
  expect(window.faults).toEqual([]);
  await window.context.close();
});

/** What stands in the variables that an executor is given. */
async function idAndSecret(shown: Locator): Promise<{ keyId: string; secret: string }> {
  const variables = await shown.locator("pre").innerText();
  const read = (name: string) => new RegExp(`^CARILLON_KEY_${name}=(.+)$`, "m").exec(variables)?.[1] ?? "";
  return { keyId: read("ID"), secret: read("SECRET") };
}

it("makes an app, shows its secret once, rotates and revokes keys", async () => {
  const window = await windowOf(browser, world, admin);
  const page = await window.open("/apps?tenant=demo");
  await page.getByRole("button", { name: apps.create }).click();
  const form = dialog(page, apps.create_title);
  await form.getByLabel(en.common.name).fill("-wrong");
  await form.getByText(apps.name_pattern).waitFor();
  await form.getByLabel(en.common.name).fill("clocks");
  await form.getByRole("button", { name: en.common.create }).click();
  const once = dialog(page, keys.secret_title);
  const first = await idAndSecret(once);
  expect(first.secret.length).toBeGreaterThan(20);
  // Escape does not throw the secret away.
  await page.keyboard.press("Escape");
  expect(await once.isVisible()).toBe(true);
  expect(await keepSecret(page, keys.secret_title)).toBe(first.secret);
  await page.getByRole("heading", { level: 1, name: "clocks" }).waitFor();
  const appId = new URL(page.url()).pathname.split("/").at(-1) ?? "";
  const clocks = { tenant: "demo", app: "clocks", appId, ...first };
  await world.executor(clocks);
  await page.reload();
  await page.getByText(first.keyId).first().waitFor();
  expect(await page.content()).not.toContain(first.secret);

  await page.getByRole("button", { name: keys.rotate }).click();
  const rotate = dialog(page, keys.rotate_title);
  await rotate.getByText(like(keys.overlap_until)).waitFor();
  expect(await window.axe()).toEqual([]);
  await window.picture("engine-rotate");
  await rotate.getByRole("button", { name: keys.rotate }).click();
  const second = await idAndSecret(once);
  expect(second.keyId).not.toBe(first.keyId);
  await keepSecret(page, keys.secret_title);
  // Both sign during the overlap.
  await world.executor(clocks);
  await world.executor({ ...clocks, ...second });
  expect(await online("clocks")).toHaveLength(3);

  const row = page.getByRole("row").filter({ hasText: first.keyId });
  await row.getByRole("button", { name: keys.revoke }).click();
  const revoke = dialog(page, say(keys.revoke_question, { id: first.keyId }));
  await revoke.getByText(keys.revoke_consequence).waitFor();
  await window.picture("engine-revoke");
  await revoke.getByRole("button", { name: keys.revoke }).click();
  await row.getByText(keys.states.revoked, { exact: true }).waitFor();
  // Executors that sign with it go offline; the new key continues to work.
  await until("the old key's executors to be gone", async () => (await online("clocks")).length === 1);
  expect(window.faults).toEqual([]);
  await window.context.close();
});

it("does not undo another user's changes to an app that is being edited", async () => {
  const window = await windowOf(browser, world, admin);
  const page = await window.open(`/apps/${key.appId}`);
  await page.getByRole("button", { name: en.common.edit, exact: true }).click();
  const form = dialog(page, say(apps.edit_title, { name: "bells" }));
  await form.getByLabel(en.common.description).fill("rings the bells");
  const app = { params: { path: { id: key.appId } } };
  got(await world.api.PATCH("/apps/{id}", { ...app, body: { max_concurrent: 77 } }));
  // The page behind the form knows.
  await page.locator("dl.facts dd").getByText("77", { exact: true }).waitFor();
  await form.getByRole("button", { name: en.common.save }).click();
  await form.getByRole("button", { name: en.people.form.reload }).waitFor();
  expect(got(await world.api.GET("/apps/{id}", app))).toMatchObject({ max_concurrent: 77, description: "" });
  got(await world.api.PATCH("/apps/{id}", { ...app, body: { max_concurrent: 0 } }));
  expect(window.faults.filter((fault) => !fault.includes("409"))).toEqual([]);
  await window.context.close();
});

it("tells of the node and its leases, and of its settings without their secrets", async () => {
  const [node] = got(await world.api.GET("/nodes")).items;
  const name = node?.name ?? "";
  const window = await windowOf(browser, world, admin);
  const page = await window.open("/nodes");
  const row = page.getByRole("row").filter({ hasText: name });
  await row.getByText(en.nodes.nodes.online, { exact: true }).waitFor();
  const heads = await page.getByRole("columnheader").allInnerTexts();
  const cell = (name: string) => row.getByRole("cell").nth(heads.findIndex((head) => head.trim() === name));
  const heartbeat = Date.parse((await cell(en.nodes.nodes.heartbeat).locator("time").getAttribute("datetime")) ?? "");
  expect(Math.abs(Date.now() - heartbeat)).toBeLessThan(15_000);
  // A run each second, claimed some seconds before its time.
  await until("runs in memory", async () => {
    await page.reload();
    await row.waitFor();
    return Number(await cell(en.nodes.nodes.queue).innerText()) > 0;
  });
  expect(got(await world.api.GET("/nodes")).items[0]?.queue_depth).toBeGreaterThan(0);
  const offset = got(await world.api.GET("/nodes")).items[0]?.clock_offset_ms;
  expect(Math.abs(offset ?? Number.NaN)).toBeLessThan(1_000);
  expect(await cell(en.nodes.nodes.clock).innerText()).toMatch(/^[+-]?\d+(\.\d+)? ms$/);
  await page.getByText(en.nodes.nodes.single_title).waitFor();
  for (const lease of Object.values(en.nodes.nodes.lease_names)) {
    const holder = page.locator("dt").filter({ hasText: lease }).locator("xpath=following-sibling::dd[1]");
    await holder.getByText(name, { exact: true }).waitFor();
  }
  await window.open("/settings");
  const search = page.getByRole("textbox", { name: en.nodes.settings.search });
  const answer = JSON.stringify(got(await world.api.GET("/settings", { params: { query: { limit: 500 } } })));
  for (const setting of ["server.port", "api.token", "auth.admin_password"]) {
    await search.fill(setting);
    await page.getByText(setting, { exact: true }).waitFor();
    for (const secret of [world.token, World.FIRST_PASSWORD, admin.password]) {
      expect(await page.content()).not.toContain(secret);
      expect(answer).not.toContain(secret);
    }
  }
  expect(window.faults).toEqual([]);
  await window.context.close();
});

it("makes a calendar of pasted days, keeps its versions, and does not delete it while it is used", async () => {
  const window = await windowOf(browser, world, admin);
  const page = await window.open("/calendars?tenant=demo");
  await page.getByRole("link", { name: calendars.create }).click();
  await page.getByLabel(editor.name, { exact: true }).fill("bank");
  await page.getByRole("button", { name: editor.paste, exact: true }).click();
  const paste = dialog(page, editor.paste_title);
  await paste.getByRole("textbox", { name: editor.paste_title }).fill("2027-10-01..2027-10-07 off\n2027-10-09 work\n12-25\nno day at all");
  await paste.getByText(say(editor.paste_found, { excluded: 8, workdays: 1 })).waitFor();
  await paste.getByText(like(editor.paste_wrong, { parts: "no day at all" })).waitFor();
  expect(await window.axe()).toEqual([]);
  await window.picture("engine-paste");
  await paste.getByRole("button", { name: editor.paste_take }).click();
  await page.getByRole("button", { name: en.common.create }).click();
  await page.getByRole("heading", { level: 1, name: "bank" }).waitFor();
  const path = { tenant: "demo", name: "bank" };
  const made = got(await world.api.GET("/calendars/{tenant}/{name}", { params: { path } }));
  expect(made).toMatchObject({ version: 1, workdays: ["2027-10-09"] });
  // The weekend among them is off already.
  expect([...made.excluded_days].sort()).toEqual(["12-25", ...[1, 4, 5, 6, 7].map((day) => `2027-10-0${day}`)]);

  await page.getByRole("button", { name: editor.delete }).waitFor();
  await world.tasks(key, [{ name: "settles", handler: "echo", cron: "0 0 9 * * ?", calendar: "bank" }]);
  await page.getByRole("link", { name: /settles/ }).waitFor();
  await page.getByRole("button", { name: editor.delete }).waitFor({ state: "hidden" });
  expect((await world.api.DELETE("/calendars/{tenant}/{name}", { params: { path } })).response.status).toBe(409);

  await page.getByLabel(editor.description).fill("of the bank");
  await page.getByRole("button", { name: en.common.save, exact: true }).click();
  await page.getByText(like(editor.saved, { version: 2 })).waitFor();
  await choose(page, page.getByRole("combobox", { name: editor.versions, exact: true }), `${calendars.version} 1`);
  await page.getByText(like(editor.old_title, { version: 1 })).waitFor();
  await page.getByRole("button", { name: editor.take_over }).click();
  expect(await page.getByLabel(editor.description).inputValue()).toBe("");
  await page.getByText(editor.unsaved, { exact: false }).waitFor();
  expect(window.faults).toEqual([]);
  await window.context.close();
});

it("begins a maintenance window at once: tasks rest, until it is ended", async () => {
  const window = await windowOf(browser, world, admin);
  const page = await window.open("/maintenance?tenant=demo");
  await page.getByRole("button", { name: maintenance.begin }).click();
  const form = dialog(page, maintenance.begin);
  await form.getByRole("radio", { name: like(maintenance.actions.skip) }).check();
  await form.getByLabel(like(maintenance.note)).fill("database upgrade");
  await window.picture("engine-maintenance");
  await form.getByRole("button", { name: en.common.create }).click();
  await page.getByText(maintenance.begun).waitFor();
  const row = page.getByRole("row").filter({ hasText: "database upgrade" });
  await row.getByText(maintenance.running, { exact: true }).waitFor();
  const id = tasks.get("every second") ?? "";
  await until("a run that rests", async () => {
    const query = { task: id, status: "expired" as const, reason: "maintenance" as const, limit: 1 };
    return got(await world.api.GET("/task-logs", { params: { query } })).items.length > 0;
  });
  await row.getByRole("button", { name: maintenance.end }).click();
  const question = dialog(page, maintenance.end_question);
  await question.getByText(maintenance.end_consequence.skip).waitFor();
  await question.getByRole("button", { name: maintenance.end }).click();
  await page.getByText(maintenance.ended, { exact: true }).waitFor();
  const ended = Date.now();
  await until("runs after it", async () => got(await world.api.GET("/task-logs", { params: { query: { task: id, status: "succeeded", from: ended, limit: 1 } } })).items.length > 0);
  expect(window.faults).toEqual([]);
  await window.context.close();
});
