/** Executors of xxl-job, from the door of an app to their runs; what was imported, and where it runs by now. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import en from "../src/i18n/en";
import { startBrowser, windowOf } from "./harness/browser";
import { until } from "./harness/process";
import { got, World, type AppKey, type Person } from "./harness/world";
import { dialog, keepSecret, say, wrong } from "./harness/words";

const { door, token, executors, library, task: ofTask, log: ofLog } = en.xxljob;
const { keys } = en.executors;
const { groups, progress, count, commands, side } = en.imports;

let world: World;
let browser: Browser;
let admin: Person;
let key: AppKey;

beforeAll(async () => {
  [world, browser] = await Promise.all([World.start(), startBrowser()]);
  admin = await world.admin();
  key = await world.app("shop", "orders");
});

afterAll(async () => {
  await browser.close();
  await world.end();
});

it("opens the door of an app, shows who comes in and what they run, and closes it again", async () => {
  const window = await windowOf(browser, world, admin, { width: 1440 });
  const page = await window.open(`/apps/${key.appId}`);
  const part = page.getByRole("region", { name: door.title });
  await part.getByText(door.closed, { exact: true }).waitFor();
  await part.getByText(say(door.closed_help, { app: "orders" })).waitFor();
  await part.getByRole("button", { name: door.open_it }).click();
  const form = dialog(page, token.create_title);
  await form.getByLabel(keys.note_label, { exact: false }).fill("the old services");
  await form.getByRole("button", { name: en.common.create }).click();
  const once = dialog(page, token.secret_title);
  const properties = await once.locator("pre").innerText();
  expect(await window.axe()).toEqual([]);
  await window.picture("xxljob-token");
  const secret = await keepSecret(page, token.secret_title);
  const address = /^xxl\.job\.admin\.addresses=(\S+)$/m.exec(properties)?.[1] ?? "";
  expect(address).toMatch(/^http:\/\/\S+\/xxl-job-admin$/);
  expect(properties).toContain(`xxl.job.accessToken=${secret}\n`);

  await part.getByText(door.open, { exact: true }).waitFor();
  await part.getByText(executors.none).waitFor();
  await part.getByRole("row").filter({ hasText: "the old services" }).getByText(keys.states.valid, { exact: true }).waitFor();
  expect(await page.content()).not.toContain(secret);
  const executor = await world.plainExecutor(key, secret, "axios/1.7.4");
  const listens = executor.address.replace(/\/$/, "");
  const row = part.getByRole("row").filter({ hasText: listens });
  for (const text of [library.node, "axios/1.7.4", en.executors.executors.state.online]) await row.getByText(text, { exact: true }).waitFor();
  await part.getByText(en.xxljob.differs.of.node).waitFor();
  expect(await part.getByText(en.xxljob.differs.of.go).count()).toBe(0);
  expect(await window.axe()).toEqual([]);
  await window.picture("xxljob-door");

  const made = await world.tasks(key, [{ name: "nightly", handler: "settleDay", schedule: "none", block_strategy: "serial", timeout_ms: 1_500, started: true }]);
  const task = made.get("nightly") ?? "";
  await window.open(`/tasks/${task}`);
  await page.getByRole("heading", { name: ofTask.title }).waitFor();
  await page.getByRole("link", { name: listens }).waitFor();
  for (const note of [ofTask.note.refused, ofTask.note.seconds]) await page.getByText(note).waitFor();
  await page.getByText(ofTask.number_unknown).waitFor();

  executor.lines = ["settles 17 bills", "is done"];
  got(await world.api.POST("/tasks/{id}/run", { params: { path: { id: task } }, body: { at: null, delay_ms: null, idempotency_key: null, priority: null } }));
  const { id } = await world.log(task, "succeeded");
  await until("the run", async () => Promise.resolve(executor.runs.length > 0));
  expect(executor.runs).toMatchObject([{ executorHandler: "settleDay" }]);
  await window.open(`/logs/${id}`);
  const fact = (label: string) => page.locator(".ant-descriptions-item-label").filter({ hasText: label }).locator("xpath=following-sibling::*[1]");
  // What the executor knows the run by, as it was sent.
  await until("the number", async () => (await fact(ofLog.number).innerText()) === String(executor.runs[0]?.logId));
  expect(await fact(ofTask.handler).innerText()).toBe("settleDay");
  expect(await fact(en.common.executor).innerText()).toContain(listens.replace("http://", ""));
  // Its log, from the first line on: what it keeps has no end in bytes.
  const output = page.getByRole("region", { name: say(en.logs.output.label, { attempt: 1 }) });
  await output.getByText("settles 17 bills", { exact: true }).waitFor();
  await page.locator('[data-output="complete"]').waitFor();
  await window.picture("xxljob-log");

  await window.open(`/apps/${key.appId}`);
  await part.getByRole("row").filter({ hasText: "the old services" }).getByRole("button", { name: keys.revoke }).click();
  const asked = page.getByRole("dialog");
  await asked.getByText(token.revoke_last).waitFor();
  await asked.getByText(token.revoke_consequence).waitFor();
  await asked.getByRole("button", { name: keys.revoke }).click();
  await page.getByText(token.revoked_done).waitFor();
  await part.getByText(door.closed, { exact: true }).waitFor();
  expect((await executor.register()).code).not.toBe(200);
  expect(window.faults).toEqual([]);
  await window.context.close();
});

it("takes the token that executors have already, but none that is published", async () => {
  const window = await windowOf(browser, world, admin);
  const { appId } = await world.app("shop", "stock");
  const page = await window.open(`/apps/${appId}`);
  await page.getByRole("button", { name: door.open_it }).click();
  const form = dialog(page, token.create_title);
  await form.getByText(token.theirs, { exact: true }).click();
  const field = page.getByLabel(token.secret, { exact: true });
  await field.fill("default_token");
  await form.getByRole("button", { name: en.common.create }).click();
  await wrong(field).filter({ hasText: /16/ }).waitFor();
  expect(got(await world.api.GET("/apps/{id}/keys", { params: { path: { id: appId } } })).items.filter(({ kind }) => kind === "token")).toEqual([]);
  await field.fill("theirs-since-2019-kept");
  await form.getByRole("button", { name: en.common.create }).click();
  expect(await keepSecret(page, token.secret_title)).toBe("theirs-since-2019-kept");
  await page.getByText(door.open, { exact: true }).waitFor();
  expect((await (await world.plainExecutor({ tenant: "shop", app: "stock" }, "theirs-since-2019-kept")).register()).code).toBe(200);
  expect(window.faults).toEqual([]);
  await window.context.close();
});

it("says what to type where nothing is imported, and where each imported group runs by now", async () => {
  const window = await windowOf(browser, world, admin, { width: 1440 });
  const page = await window.open("/imports?tenant=shop");
  await page.getByRole("heading", { name: say(commands.title_empty, { tenant: "shop" }) }).waitFor();
  const command = page.locator("pre").first();
  expect(await command.innerText()).toContain("import xxl-job --from mysql://reader@HOST:3306/xxl_job --time-zone ZONE --tenant shop --dry-run");
  await page.getByRole("button", { name: say(commands.copy, { n: 1 }) }).click();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(await command.innerText());

  const bills = await world.app("shop", "bills");
  const first = Date.now() + 86_400_000;
  const cron = "0 0 3 * * ?";
  const ofOrders = await world.tasks(key, [
    { name: "moved", handler: "a", cron, valid_from: first, started: true },
    { name: "always stopped", handler: "b", cron },
  ]);
  const ofBills = await world.tasks(bills, [{ name: "sent back", handler: "c", cron, valid_from: first }]);
  const names = [...ofOrders, ...ofBills];
  const items = names.map(([, task], index) => ({ task, origin: `old-admin#${index + 41}`, number: index + 41 }));
  expect((await world.api.PUT("/tenants/{tenant}/origins", { params: { path: { tenant: "shop" } }, body: { items } })).response.status).toBe(204);

  const part = page.getByRole("region", { name: groups.title });
  const row = (app: string) => part.getByRole("row").filter({ hasText: app });
  await page.reload();
  await row("orders").getByText(progress.here, { exact: true }).waitFor();
  await row("orders").getByText(`${say(count.here, { n: 1 })} · ${say(count.waiting, { n: 1 })}`).waitFor();
  await row("bills").getByText(progress.back, { exact: true }).waitFor();
  expect(await window.axe()).toEqual([]);
  await window.picture("xxljob-imports");

  await part.getByRole("button", { name: `${groups.choose}: bills` }).click();
  await page.getByRole("heading", { name: say(commands.title_of, { app: "bills" }) }).waitFor();
  expect(await page.locator("pre").filter({ hasText: "import switch" }).innerText()).toMatch(/--tenant shop --source old-admin --group bills$/);
  const list = page.getByRole("region", { name: en.imports.tasks.label, exact: true });
  await list.getByRole("row").filter({ hasText: "sent back" }).getByText(side.back, { exact: true }).waitFor();
  expect(await list.getByRole("link", { name: "moved", exact: true }).count()).toBe(0);
  // A change of a task is told, and its group follows.
  got(await world.api.POST("/tasks/{id}/start", { params: { path: { id: ofBills.get("sent back") ?? "" } } }));
  await row("bills").getByText(progress.here, { exact: true }).waitFor();

  await list.getByRole("link", { name: "sent back", exact: true }).click();
  await page.getByRole("heading", { name: ofTask.imported_title }).waitFor();
  await page.locator(".facts .mono").getByText("43", { exact: true }).waitFor();
  await page.getByRole("link", { name: say(ofTask.origin_of, { source: "old-admin", there: "43" }) }).click();
  await part.waitFor();
  expect(window.faults).toEqual([]);
  await window.context.close();
});
