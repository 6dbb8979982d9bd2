/** One task's page: its last runs, what comes next and how to leave one out, days on which clocks change, its neighbours. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import en from "../src/i18n/en";
import { startBrowser, windowOf, type Watched } from "./harness/browser";
import { until } from "./harness/process";
import { dialog, like, say, told } from "./harness/words";
import { got, World, type AppKey } from "./harness/world";

const { common, task: words, tasks, schedule } = en;

let world: World;
let browser: Browser;
let key: AppKey;
let ids: Map<string, string>;
let window: Watched;
let page: Page;

beforeAll(async () => {
  [world, browser] = await Promise.all([World.start(), startBrowser()]);
  const admin = await world.admin();
  key = await world.app("demo", "bells");
  await world.executor(key);
  const changes = { handler: "echo", cron: "0 30 2 ? 3,10 SUN", time_zone: "Europe/Berlin", started: true };
  ids = await world.tasks(key, [
    { name: "often", handler: "tick", cron: "0/5 * * * * ?", started: true },
    { name: "noon", handler: "echo", cron: "0 0 12 * * ?", started: true },
    { name: "clocks", ...changes },
    { name: "clocks, skipping", ...changes, dst_gap: "skip", dst_overlap: "first" },
    { name: "child", handler: "echo", schedule: "none", parents: [{ task: "noon" }], started: true },
    { name: "undertaker", handler: "echo", schedule: "none", parents: [{ task: "noon", on: "failure" }], started: true },
  ]);
  window = await windowOf(browser, world, admin);
  page = window.page;
});

afterAll(async () => {
  await browser.close();
  await world.end();
});

const idOf = (name: string) => ids.get(name) ?? "";

async function open(address: string): Promise<void> {
  await window.open(address);
  await window.settled();
}

const fires = () => page.locator(".task-fires").getByRole("listitem");

async function preview(name: string, count: number) {
  return got(await world.api.GET("/tasks/{id}/preview", { params: { path: { id: idOf(name) }, query: { count } } })).items;
}

it("shows the last runs as a strip that arrows go along, and each leads to its log", async () => {
  await world.log(idOf("often"), "succeeded");
  await open(`/tasks/${idOf("often")}`);
  const strip = page.getByRole("list", { name: words.strip.title });
  const runs = strip.getByRole("link", { name: common.log_status.succeeded });
  await runs.nth(1).waitFor();
  await page.getByText(like(words.strip.rate)).waitFor();
  await strip.getByRole("link").last().focus();
  const last = await page.evaluate(() => document.activeElement?.getAttribute("href"));
  await page.keyboard.press("ArrowLeft");
  expect(await page.evaluate(() => document.activeElement?.getAttribute("href"))).not.toBe(last);
  await runs.first().focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: like(en.logs.title) }).waitFor();
  await page.getByRole("heading", { name: en.logs.happened }).waitFor();
  expect(window.faults).toEqual([]);
});

it("cancels one written fire, and no other", async () => {
  await open(`/tasks/${idOf("often")}`);
  const item = (await preview("often", 9)).at(8);
  const at = item?.kind === "fires" ? item.fire_time : 0;
  const line = fires().filter({ has: page.locator(`time[datetime="${new Date(at).toISOString()}"]`) });
  // Its run is known by then.
  await line.getByRole("link", { name: common.log_status.init }).or(line.getByRole("link", { name: common.log_status.queued })).waitFor();
  await line.getByRole("button", { name: words.fires.cancel, exact: true }).click();
  const question = dialog(page, like(words.fires.cancel_question));
  await question.getByText(words.fires.cancel_consequence_for_now).waitFor();
  expect(await question.getByText(common.cannot_be_undone).count()).toBe(0);
  expect(await window.axe()).toEqual([]);
  await window.picture("task-cancel-fire");
  await question.getByRole("button", { name: words.fires.cancel, exact: true }).click();
  await told(page, words.fires.cancelled).waitFor();
  const items = got(await world.api.GET("/task-logs", { params: { query: { task: idOf("often"), from: at - 5_000, until: at + 5_001, order: "oldest" } } })).items;
  expect(items.map(({ fire_time, status, reason }) => [fire_time - at, status === "cancelled", reason])).toEqual([
    [-5_000, false, ""],
    [0, true, "cancelled_manually"],
    [5_000, false, ""],
  ]);
  const cancelled = page.locator(".task-fires li").filter({ has: page.locator(`time[datetime="${new Date(at).toISOString()}"]`) });
  await cancelled.getByText(common.log_status.cancelled).waitFor();
  await window.picture("task-fire-cancelled");
  // As the question has said.
  await cancelled.getByRole("button", { name: words.fires.restore }).click();
  await told(page, words.fires.restored).waitFor();
  await world.logAt(idOf("often"), at, "succeeded");
});

it("goes on with the next fires as they pass", async () => {
  await open(`/tasks/${idOf("often")}`);
  const first = () => fires().first().locator("time").first().getAttribute("datetime");
  const [at, count] = [Date.parse((await first()) ?? ""), await fires().count()];
  expect(count).toBeGreaterThanOrEqual(9);
  // Nothing changes of the task; its fires pass all the same.
  await until("further fires", async () => Date.parse((await first()) ?? "") >= at + 10_000 && (await fires().count()) >= count);
  expect(window.faults).toEqual([]);
});

it("begins with the task's own parameters, whatever was written for another one", async () => {
  await open(`/tasks/${idOf("often")}`);
  await page.getByRole("button", { name: new RegExp(`${en.tasks.run.button}$`) }).click();
  const run = dialog(page, say(en.tasks.run.title, { name: "often" }));
  await run.getByText(en.tasks.run.other_params).click();
  await run.getByRole("textbox").last().fill("of another task");
  await run.getByRole("button", { name: common.cancel }).click();
  await run.waitFor({ state: "hidden" });
  await page.getByRole("button", { name: new RegExp(`${en.tasks.run.button}$`) }).click();
  await run.getByText(en.tasks.run.other_params).click();
  expect(await run.getByRole("textbox").last().inputValue()).not.toBe("of another task");
  await run.getByRole("button", { name: common.cancel }).click();
  expect(window.faults).toEqual([]);
});

it("leaves a far fire out, and takes that back", async () => {
  await open(`/tasks/${idOf("noon")}`);
  const before = await preview("noon", 3);
  await fires().nth(1).getByRole("button", { name: words.fires.cancel, exact: true }).click();
  const question = dialog(page, like(words.fires.cancel_question));
  await question.getByText(words.fires.skip_consequence).waitFor();
  await question.getByRole("button", { name: words.fires.cancel, exact: true }).click();
  await fires().nth(1).getByText(words.fires.reason.cancelled_manually).waitFor();
  await question.waitFor({ state: "hidden" });
  await window.picture("task-fire-skipped");
  expect(await window.axe()).toEqual([]);
  expect((await preview("noon", 3)).map(({ kind, fire_time }) => [kind, fire_time])).toEqual([
    ["fires", before[0]?.fire_time],
    ["skipped", before[1]?.fire_time],
    ["fires", before[2]?.fire_time],
  ]);
  await fires().nth(1).getByRole("button", { name: words.fires.restore }).click();
  await told(page, words.fires.restored).waitFor();
  await fires().nth(1).getByRole("button", { name: words.fires.cancel, exact: true }).waitFor();
  expect(await preview("noon", 3)).toEqual(before);
  expect(window.faults).toEqual([]);
});

it("marks the days on which clocks change, and what they skip", async () => {
  await open(`/tasks/${idOf("clocks")}`);
  await page.getByText(words.fires.after_gap).waitFor();
  await page.getByText(say(words.fires.offset, { offset: "+02:00" })).waitFor();
  await open(`/tasks/${idOf("clocks, skipping")}`);
  const gap = fires().filter({ hasText: words.fires.reason.dst_gap });
  await gap.waitFor();
  // Nothing can be cancelled of what does not come.
  expect(await gap.getByRole("button").count()).toBe(0);
  const more = page.locator(".task-fires").getByRole("button", { name: common.more });
  await more.click();
  await fires().filter({ hasText: words.fires.reason.overlap_second_pass }).first().waitFor();
  await window.picture("task-clocks");

  // The same while one chooses.
  await open(`/tasks/${idOf("clocks")}/edit`);
  const shown = page.getByRole("region", { name: schedule.preview.title });
  await shown.getByText(schedule.preview.after_gap).waitFor();
  await page.getByRole("radiogroup", { name: tasks.fields.label.dst_gap }).getByRole("radio").nth(1).check();
  await shown.getByText(schedule.skip.dst_gap).waitFor();
  expect(await shown.getByText(schedule.preview.after_gap).count()).toBe(0);
  await shown.scrollIntoViewIfNeeded();
  await window.picture("task-clocks-preview");
  expect(window.faults).toEqual([]);
});

it("shows the tasks after it as a graph whose boxes lead there", async () => {
  await open(`/tasks/${idOf("noon")}`);
  await page.getByRole("tab", { name: words.parts.graph }).click();
  const graph = page.getByRole("region", { name: words.graph.title });
  await graph.getByRole("link", { name: "child", exact: true }).waitFor();
  await page.getByText(say(words.graph.sentence, { from: "noon", to: "undertaker", on: words.graph.on.failure })).waitFor();
  await graph.scrollIntoViewIfNeeded();
  expect(await window.axe()).toEqual([]);
  await window.picture("task-graph");
  await graph.getByRole("link", { name: "child", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "child", exact: true }).waitFor();
  await page.getByText(words.fires.none_by_itself).waitFor();
  await page.getByRole("tab", { name: words.parts.graph }).click();
  await page.getByRole("region", { name: words.graph.title }).getByRole("link", { name: "noon", exact: true }).waitFor();
  expect(window.faults).toEqual([]);
});
