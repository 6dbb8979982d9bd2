/** What one does with tasks: find, make, change, restore, start, stop, pause, run, make up for, move, delete. */
import { readFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, afterEach, expect, it } from "vitest";
import en from "../src/i18n/en";
import { startBrowser, windowOf, type Watched } from "./harness/browser";
import { until } from "./harness/process";
import { choose, dialog, like, say, told, wrong } from "./harness/words";
import { got, World, type AppKey, type Person } from "./harness/world";

const { common, tasks, schedule } = en;
const { label } = tasks.fields;

let world: World;
let browser: Browser;
let admin: Person;
let key: AppKey;
let ids: Map<string, string>;
let window: Watched;
let page: Page;

beforeAll(async () => {
  [world, browser] = await Promise.all([World.start(), startBrowser()]);
  admin = await world.admin();
  key = await world.app("demo", "bells");
  await world.executor(key);
  ids = await world.tasks(key, [
    { name: "morning report", handler: "echo", cron: "0 0 6 * * ?", params: "first", started: true },
    { name: "evening report", handler: "echo", cron: "0 0 18 * * ?", started: true },
    { name: "by hand", handler: "echo", schedule: "none" },
    { name: "minutely", handler: "tick", cron: "0 * * * * ?", time_zone: "UTC", started: true },
  ]);
  window = await windowOf(browser, world, admin);
  page = window.page;
});

beforeEach(() => {
  window.faults.length = 0;
});

afterEach(() => {
  expect(window.faults).toEqual([]);
});

afterAll(async () => {
  await browser.close();
  await world.end();
});

const idOf = (name: string) => ids.get(name) ?? "";

async function task(name: string) {
  return got(await world.api.GET("/tasks/{id}", { params: { path: { id: idOf(name) } } }));
}

async function open(address: string): Promise<void> {
  await window.open(address);
  await window.settled();
}

const named = (name: string) => page.getByRole("link", { name, exact: true });

/** Opens a dialog out of the menu of a task's page. */
async function fromMenu(name: string, entry: string): Promise<void> {
  await page.getByRole("button", { name: say(tasks.actions_of, { name }) }).click();
  await page.getByRole("menuitem", { name: entry, exact: true }).click();
}

it("finds tasks, and the address bar keeps what was asked", async () => {
  await open("/tasks?tenant=demo");
  await page.getByLabel(tasks.list.search).fill("REPORT");
  await named("by hand").waitFor({ state: "hidden" });
  await named("morning report").waitFor();
  expect(new URL(page.url()).searchParams.get("search")).toBe("REPORT");
  await choose(page, page.getByRole("combobox", { name: common.status }), common.task_state.stopped);
  await page.getByText(common.empty_filtered).waitFor();
  await page.reload();
  await page.getByText(common.empty_filtered).waitFor();
  expect(await page.getByLabel(tasks.list.search).inputValue()).toBe("REPORT");
  await page.getByLabel(tasks.list.search).fill("");
  await named("by hand").waitFor();
  expect(await named("morning report").count()).toBe(0);
  expect(new URL(page.url()).searchParams.get("state")).toBe("stopped");
  await page.getByRole("button", { name: common.clear_filters }).click();
  await named("morning report").waitFor();
  expect([...new URL(page.url()).searchParams.keys()]).toEqual(["tenant"]);
});

it("says at the fields what the node does not take, and makes the task when it is mended", async () => {
  await open("/tasks/new?tenant=demo&app=bells");
  const create = page.getByRole("button", { name: tasks.editor.create, exact: true });
  const field = (name: string) => page.getByLabel(name, { exact: true });
  // The kind of schedule has the same name.
  const cron = page.getByRole("textbox", { name: label.cron });
  await page.getByRole("radiogroup", { name: schedule.kind.label }).getByText(schedule.kind.cron).click();
  await cron.fill("every now and then");
  await page.getByText(like(schedule.preview.wrong)).waitFor();
  await create.click();
  await wrong(field(label.name)).waitFor();
  await wrong(field(label.handler)).waitFor();
  await wrong(cron).waitFor();
  await page.getByText(tasks.editor.errors).waitFor();
  expect(await window.axe()).toEqual([]);
  await window.picture("tasks-refused");
  await field(label.name).fill("morning report");
  await field(label.handler).fill("echo");
  await cron.fill("0 15 7 * * ?");
  await create.click();
  await wrong(field(label.name)).getByText(tasks.editor.name_taken).waitFor();
  await field(label.name).fill("late report");
  await create.click();
  await page.getByRole("heading", { level: 1, name: "late report" }).waitFor();
  const made = got(await world.api.GET("/tasks", { params: { query: { tenant: "demo" } } })).items.find(({ name }) => name === "late report");
  expect(made).toMatchObject({ cron: "0 15 7 * * ?", handler: "echo", state: "started" });
  ids.set("late report", made?.id ?? "");
});

it("edits a task, shows what was changed, and brings the earlier definition back", async () => {
  await open(`/tasks/${idOf("morning report")}`);
  await page.getByRole("button", { name: common.edit, exact: true }).click();
  await page.getByLabel(label.params, { exact: true }).fill("second");
  await page.getByRole("button", { name: common.save, exact: true }).click();
  // The editor has the same heading: only the task's own page offers to edit it.
  await page.getByRole("button", { name: common.edit, exact: true }).waitFor();
  expect((await task("morning report")).params).toBe("second");
  await page.getByRole("tab", { name: en.task.parts.history }).click();
  const edited = page.getByRole("listitem").filter({ hasText: en.audit.actions.edit_task });
  await edited.locator("del").getByText("first").waitFor();
  await edited.locator("ins").getByText("second").waitFor();
  await window.picture("tasks-history");
  const applied = page.getByRole("listitem").filter({ hasText: en.audit.actions.apply_tasks });
  await applied.getByRole("button", { name: tasks.restore.button }).click();
  const question = dialog(page, like(tasks.restore.question));
  await question.locator("del").getByText("second").waitFor();
  expect(await window.axe()).toEqual([]);
  await window.picture("tasks-restore");
  await question.getByRole("button", { name: tasks.restore.button }).click();
  await told(page, tasks.restore.done).waitFor();
  expect((await task("morning report")).params).toBe("first");
});

it("explains to the second of two who edit what the first has changed, and loses nothing", async () => {
  await open(`/tasks/${idOf("evening report")}/edit`);
  await page.getByLabel(label.params, { exact: true }).fill("what I typed for minutes");
  const other = await windowOf(browser, world, await world.person("olga", "tenant admin", "demo"));
  await other.open(`/tasks/${idOf("evening report")}/edit`);
  await other.page.getByLabel(label.description, { exact: true }).fill("olga's words");
  await other.page.getByRole("button", { name: common.save, exact: true }).click();
  await other.page.getByRole("heading", { level: 1, name: "evening report", exact: true }).waitFor();
  expect(other.faults).toEqual([]);
  await other.context.close();

  await page.getByRole("button", { name: common.save, exact: true }).click();
  const conflict = page.getByRole("alert").filter({ hasText: tasks.conflict.title });
  await conflict.getByText("olga's words").first().waitFor();
  // Above the form, in sight, and where the keyboard is.
  const inView = (element: Element) => {
    const { top, bottom } = element.getBoundingClientRect();
    return top >= 0 && top < innerHeight && bottom > 0 && document.activeElement?.contains(element) === true;
  };
  expect(await conflict.evaluate(inView)).toBe(true);
  expect(await page.getByLabel(label.params, { exact: true }).inputValue()).toBe("what I typed for minutes");
  expect(await task("evening report")).toMatchObject({ description: "olga's words", params: "" });
  expect(await window.axe()).toEqual([]);
  await window.picture("tasks-conflict");
  await conflict.getByRole("button", { name: tasks.conflict.load }).click();
  // The form has the new version; what was typed stays in sight.
  expect(await page.getByLabel(label.description, { exact: true }).inputValue()).toBe("olga's words");
  await page.getByText(tasks.conflict.loaded).waitFor();
  await page.getByText("what I typed for minutes").first().waitFor();
  await page.getByLabel(label.params, { exact: true }).fill("what I typed for minutes");
  await page.getByRole("button", { name: common.save, exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "evening report", exact: true }).waitFor();
  expect(await task("evening report")).toMatchObject({ description: "olga's words", params: "what I typed for minutes" });
});

it("stops and starts many, and says how many", async () => {
  await open("/tasks?tenant=demo&search=report");
  for (const name of ["morning report", "evening report"]) await page.getByRole("checkbox", { name: say(tasks.list.select, { name }) }).check();
  const bulk = page.getByRole("group", { name: tasks.bulk.label });
  await bulk.getByText(say(tasks.bulk.selected_other, { count: 2 })).waitFor();
  for (const verb of ["stop", "start"] as const) {
    await bulk.getByRole("button", { name: tasks[verb].button, exact: true }).click();
    const question = dialog(page, say(tasks.bulk[`${verb}_question_other`], { count: 2 }));
    await question.getByText(tasks[verb].consequence).waitFor();
    const named = await question.getByRole("list", { name: tasks.bulk.label }).getByRole("listitem").allInnerTexts();
    expect(named.sort()).toEqual(["demo / bells / evening report", "demo / bells / morning report"]);
    await window.picture("tasks-bulk");
    await question.getByRole("button", { name: tasks[verb].button, exact: true }).click();
    await told(page, say(tasks.bulk[`${verb}_done_other`], { count: 2 })).waitFor();
    await question.waitFor({ state: "hidden" });
    const state = verb === "stop" ? "stopped" : "started";
    for (const name of ["morning report", "evening report"]) expect((await task(name)).state).toBe(state);
    expect((await task("late report")).state).toBe("started");
  }
});

it("runs a task with parameters of that run alone", async () => {
  await open(`/tasks/${idOf("by hand")}`);
  await page.getByRole("button", { name: tasks.run.button }).click();
  const asked = dialog(page, say(tasks.run.title, { name: "by hand" }));
  await asked.getByRole("checkbox", { name: tasks.run.other_params }).check();
  await asked.getByLabel(label.params, { exact: true }).fill('{"only":"now"}');
  expect(await window.axe()).toEqual([]);
  await window.picture("tasks-run");
  await asked.getByRole("button", { name: tasks.run.button }).click();
  await asked.getByRole("link", { name: like(tasks.run.log) }).click();
  await page.getByRole("heading", { level: 1, name: like(en.logs.title) }).waitFor();
  await page.locator("#content").getByText(common.log_status.succeeded).first().waitFor();
  expect(await world.log(idOf("by hand"), "succeeded")).toMatchObject({ params: '{"only":"now"}', output: '{"only":"now"}', trigger: "manual" });
  expect((await task("by hand")).params).toBe("");
});

it("pauses a task with a reason that others read, and starts it again", async () => {
  const note = "the printer is out of paper";
  await open(`/tasks/${idOf("minutely")}`);
  await page.getByRole("button", { name: tasks.pause.button }).click();
  const question = dialog(page, say(tasks.pause.question, { name: "minutely" }));
  expect(await question.getByRole("button", { name: tasks.pause.button }).isEnabled()).toBe(false);
  await question.getByLabel(tasks.pause.note).fill(note);
  await window.picture("tasks-pause");
  await question.getByRole("button", { name: tasks.pause.button }).click();
  await page.getByRole("alert").filter({ hasText: note }).waitFor();
  expect(await task("minutely")).toMatchObject({ state: "paused", pause_note: note });
  await open("/tasks?tenant=demo&state=paused");
  await page.getByText(note).waitFor();
  await named("minutely").click();
  await page.getByRole("button", { name: tasks.start.button }).click();
  const start = dialog(page, say(tasks.start.question, { name: "minutely" }));
  await start.getByText(say(tasks.start.paused_because, { note })).waitFor();
  await start.getByRole("button", { name: tasks.start.button }).click();
  await page.getByText(en.task.paused).waitFor({ state: "hidden" });
  expect(await task("minutely")).toMatchObject({ state: "started" });
});

it("makes up for the fires of the last minutes", async () => {
  await open(`/tasks/${idOf("minutely")}`);
  await fromMenu("minutely", tasks.backfill.button);
  const drawer = dialog(page, say(tasks.backfill.title, { name: "minutely" }));
  const minute = Math.floor(Date.now() / 60_000) * 60_000 - 10 * 60_000;
  const local = (at: number) => new Date(at).toISOString().slice(0, 19);
  const fill = async (name: string, at: number) => {
    const input = drawer.getByLabel(name, { exact: true });
    await input.fill(local(at));
  };
  await fill(tasks.backfill.from, minute);
  await fill(tasks.backfill.until, minute - 60_000);
  await drawer.getByText(tasks.backfill.backwards).waitFor();
  const button = drawer.getByRole("button", { name: tasks.backfill.button, exact: true });
  expect(await button.isEnabled()).toBe(false);
  await fill(tasks.backfill.until, minute + 3 * 60_000);
  await drawer.getByText(say(tasks.backfill.fires_other, { n: 3 })).waitFor();
  expect(await window.axe()).toEqual([]);
  await window.picture("tasks-backfill");
  await button.click();
  await drawer.getByText(tasks.backfill.status.done).waitFor();
  const logs = await until("the runs of the backfill to end", async () => {
    const { items } = got(await world.api.GET("/task-logs", { params: { query: { task: idOf("minutely"), from: minute, until: minute + 180_000 } } }));
    return items.every(({ status }) => status === "succeeded") && items;
  });
  expect(logs.map(({ fire_time }) => fire_time).sort((a, b) => a - b)).toEqual([0, 1, 2].map((index) => minute + index * 60_000));
});

it("counts a backfill of many fires to the last, and asks before it begins", async () => {
  await open(`/tasks/${idOf("minutely")}`);
  await fromMenu("minutely", tasks.backfill.button);
  const drawer = dialog(page, say(tasks.backfill.title, { name: "minutely" }));
  const until = drawer.getByLabel(tasks.backfill.until, { exact: true });
  const from = drawer.getByLabel(tasks.backfill.from, { exact: true });
  const end = Date.parse(`${await until.inputValue()}Z`);
  await from.fill(new Date(end - 6 * 86_400_000).toISOString().slice(0, 19));
  await drawer.getByText(say(tasks.backfill.fires_other, { n: "8,640" })).waitFor();
  const count = async () => got(await world.api.GET("/tasks/{id}/backfills", { params: { path: { id: idOf("minutely") } } })).items.length;
  const before = await count();
  await drawer.getByRole("button", { name: tasks.backfill.button, exact: true }).click();
  const question = dialog(page, say(tasks.backfill.question, { name: "minutely" }));
  await question.getByText(say(tasks.backfill.fires_other, { n: "8,640" })).waitFor();
  expect(await window.axe()).toEqual([]);
  await window.picture("tasks-backfill-many");
  await question.getByRole("button", { name: common.cancel, exact: true }).click();
  await question.waitFor({ state: "hidden" });
  expect(await count()).toBe(before);
});

it("asks before a form with something unsaved is left, and not after it is saved", async () => {
  const away = page.getByRole("navigation", { name: common.menu }).getByRole("link", { name: common.pages.executors, exact: true });
  const heading = (name: string) => page.getByRole("heading", { level: 1, name, exact: true });
  const edit = page.getByRole("button", { name: common.edit, exact: true });
  const params = page.getByLabel(label.params, { exact: true });
  const question = dialog(page, common.leave.question);
  await open(`/tasks/${idOf("evening report")}`);
  // Nothing typed: nothing is asked.
  await edit.click();
  await params.waitFor();
  await page.getByRole("button", { name: common.cancel, exact: true }).click();
  await edit.click();
  await params.fill("half a thought");
  // The browser's own way back, and a link.
  await page.evaluate(() => history.back());
  await question.getByText(common.leave.consequence).waitFor();
  expect(await window.axe()).toEqual([]);
  await window.picture("tasks-leave");
  await question.getByRole("button", { name: common.leave.stay }).click();
  await question.waitFor({ state: "hidden" });
  expect(await params.inputValue()).toBe("half a thought");
  await away.click();
  await question.getByRole("button", { name: common.leave.leave }).click();
  await heading(common.pages.executors).waitFor();
  expect((await task("evening report")).params).toBe("what I typed for minutes");

  await open(`/tasks/${idOf("evening report")}/edit`);
  await page.getByLabel(label.params, { exact: true }).fill("a whole thought");
  await page.getByRole("button", { name: common.save, exact: true }).click();
  await heading("evening report").waitFor();
  await page.getByRole("button", { name: common.edit, exact: true }).waitFor();
  expect(await question.count()).toBe(0);
  expect((await task("evening report")).params).toBe("a whole thought");
});

it("saves tasks as a file, and applies a changed one after showing what it would do", async () => {
  await open("/tasks?tenant=demo&app=bells");
  const saving = page.waitForEvent("download");
  await page.getByRole("button", { name: tasks.export.button }).click();
  const saved = await saving;
  expect(saved.suggestedFilename()).toBe("tasks-demo-bells.json");
  const file = JSON.parse(readFileSync(await saved.path(), "utf8")) as { version: number; task: Record<string, unknown>[] };
  const evening = file.task.find(({ name }) => name === "evening report") ?? {};
  expect(evening).toMatchObject({ description: "olga's words", started: true });
  evening.description = "a file's words";
  file.task.push({ ...evening, name: "out of a file", started: false });

  await page.getByRole("button", { name: tasks.import.button }).click();
  const drawer = dialog(page, tasks.import.title);
  const check = drawer.getByRole("button", { name: tasks.import.check });
  await drawer.getByLabel(tasks.import.text).fill("version = 1");
  await drawer.getByText(tasks.import.problem.no_json).waitFor();
  expect(await check.isEnabled()).toBe(false);
  await drawer.getByLabel(tasks.import.text).fill(JSON.stringify({ version: 1, task: [{ tenant: "demo", app: "bells", name: "half" }] }));
  await check.click();
  await drawer.getByRole("alert").filter({ hasText: common.failure.invalid }).waitFor();
  await window.picture("tasks-import-refused");
  await drawer.getByLabel(tasks.import.text).fill(JSON.stringify(file));
  // What is checked is what is applied: nothing can be written meanwhile.
  let release = () => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  await page.route("**/api/v1/tasks/apply*", async (route) => {
    await held;
    await route.continue();
  });
  await check.click();
  await until("the text to stand still", async () => !(await drawer.getByLabel(tasks.import.text).isEditable()));
  release();
  await drawer.getByText(like(tasks.import.would)).waitFor();
  expect(await drawer.getByLabel(tasks.import.text).isEditable()).toBe(true);
  await page.unroute("**/api/v1/tasks/apply*");
  await drawer.locator("ins").getByText("a file's words").first().waitFor();
  expect(await window.axe()).toEqual([]);
  await window.picture("tasks-import");
  expect((await task("evening report")).description).toBe("olga's words");
  await drawer.getByRole("button", { name: say(tasks.import.apply_other, { count: 2 }) }).click();
  await drawer.getByText(like(tasks.import.was)).waitFor();
  expect((await task("evening report")).description).toBe("a file's words");
  const made = got(await world.api.GET("/tasks", { params: { query: { tenant: "demo", state: "stopped" } } })).items.find(({ name }) => name === "out of a file");
  expect(made?.description).toBe("a file's words");
});

it("deletes a task only when its name is typed", async () => {
  await open(`/tasks/${idOf("by hand")}`);
  await fromMenu("by hand", common.delete);
  const question = dialog(page, say(tasks.delete.question, { name: "by hand" }));
  const confirm = question.getByRole("button", { name: common.delete });
  expect(await confirm.isEnabled()).toBe(false);
  await question.getByLabel(say(common.type_to_confirm, { name: "by hand" })).fill("by han");
  expect(await confirm.isEnabled()).toBe(false);
  await question.getByLabel(say(common.type_to_confirm, { name: "by hand" })).fill("by hand");
  await window.picture("tasks-delete");
  await confirm.click();
  await page.getByRole("heading", { level: 1, name: common.pages.tasks, exact: true }).waitFor();
  await named("morning report").waitFor();
  expect(await named("by hand").count()).toBe(0);
  expect((await world.api.GET("/tasks/{id}", { params: { path: { id: idOf("by hand") } } })).response.status).toBe(404);
});
