/** The overview and the statistics: what fired, what failed, what comes, who is online. */
import { readFile } from "node:fs/promises";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import en from "../src/i18n/en";
import { instant } from "../src/lib/time";
import { startBrowser, windowOf } from "./harness/browser";
import { until } from "./harness/process";
import { got, World, type Person } from "./harness/world";
import { like, say } from "./harness/words";

const words = en.overview;

let world: World;
let browser: Browser;
let admin: Person;
let tasks: Map<string, string>;

beforeAll(async () => {
  [world, browser] = await Promise.all([World.start(), startBrowser()]);
  admin = await world.admin();
  const key = await world.app("demo", "bells");
  const other = await world.app("retail", "orders");
  await Promise.all([world.executor(key)]);
  await world.executor(other);
  tasks = await world.tasks(key, [
    { name: "every second", handler: "tick", cron: "* * * * * ?", started: true },
    { name: "always fails", handler: "fail", cron: "0/5 * * * * ?", max_retries: 0, started: true },
  ]);
  for (const [name, id] of await world.tasks(other, [{ name: "sells", handler: "tick", cron: "0/2 * * * * ?", started: true }])) tasks.set(name, id);
});

afterAll(async () => {
  await browser.close();
  await world.end();
});

function id(name: string): string {
  return tasks.get(name) ?? "";
}

/** A part of the page, by its heading. */
function section(page: Page, title: string) {
  return page.locator("#content section").filter({ has: page.getByRole("heading", { name: title, exact: true }) });
}

/** The figure of that name, with its note. */
function figure(page: Page, name: string) {
  return page.locator("dl.figures > div").filter({ has: page.getByText(name, { exact: true }) });
}

it("shows what failed, and leads to its log", async () => {
  const window = await windowOf(browser, world, admin);
  const page = await window.open("/?tenant=demo");
  const failures = section(page, words.failures.title);
  const group = failures.getByRole("listitem").filter({ hasText: "always fails" });
  await group.getByText(en.reasons.handler_failed).waitFor();
  expect(await failures.getByRole("listitem").count()).toBe(1);
  await group.getByText("the demo fails on purpose").waitFor();
  // Another failure joins the group by itself.
  const times = async () => Number(/\d+/.exec(await group.locator(".number").innerText())?.[0]);
  const before = await times();
  await until("one more failure", async () => (await times()) > before);
  await group.getByRole("link", { name: words.failures.newest }).click();
  await page.getByRole("heading", { level: 1, name: like(en.logs.title) }).waitFor();
  const { task, status } = got(await world.api.GET("/task-logs/{id}", { params: { path: { id: new URL(page.url()).pathname.split("/").at(-1) ?? "" } } }));
  expect({ task, status }).toEqual({ task: id("always fails"), status: "failed" });
  await page.goBack();
  await group.getByRole("link", { name: say(words.failures.list_of, { task: "always fails" }) }).click();
  await page.getByRole("region", { name: en.logs.list }).waitFor();
  expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({ tenant: "demo", task: id("always fails"), status: "failed", reason: "handler_failed" });
  expect(window.faults).toEqual([]);
  await window.context.close();
});

it("shows the coming three minutes in lanes, by pointer and by keyboard", async () => {
  const window = await windowOf(browser, world, admin);
  const page = await window.open("/?tenant=demo");
  const upcoming = section(page, words.upcoming.title);
  const lane = upcoming.getByRole("link", { name: /^every second/ });
  await lane.waitFor();
  await upcoming.getByRole("link", { name: /^always fails/ }).waitFor();
  expect(await upcoming.getByRole("link", { name: /^sells/ }).count()).toBe(0);
  // Three minutes of seconds are written ahead.
  await until("marks", async () => (await lane.locator(".mark").count()) > 100);
  await lane.focus();
  const reading = upcoming.locator("[aria-live]");
  await reading.getByText("every second").waitFor();
  const picked = async () => Date.parse((await reading.locator("time").getAttribute("datetime")) ?? "");
  // Away from what is due just now, which fires and goes.
  const start = await picked();
  await until("a fire further on", async () => {
    await page.keyboard.press("ArrowRight");
    return (await picked()) >= start + 20_000;
  });
  const first = await picked();
  await page.keyboard.press("ArrowRight");
  await until("the next fire", async () => (await picked()) !== first);
  expect((await picked()) - first).toBe(1_000);
  await window.picture("overview-upcoming");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "every second" }).waitFor();
  expect(new URL(page.url()).pathname).toBe(`/tasks/${id("every second")}`);
  expect(window.faults).toEqual([]);
  await window.context.close();
});

it("tells who is online, of one tenant and of all", async () => {
  const window = await windowOf(browser, world, admin);
  const page = await window.open("/");
  await window.settled();
  await until("both executors", async () => (await figure(page, words.figures.executors).getByRole("link").innerText()) === "2");
  expect(await figure(page, words.figures.nodes).getByRole("link").innerText()).toBe("1");
  await section(page, words.engine.executors).getByRole("row", { name: /bells/ }).waitFor();
  await section(page, words.engine.executors).getByRole("row", { name: /orders/ }).waitFor();
  await section(page, words.engine.nodes).getByText(words.engine.online, { exact: true }).waitFor();
  await section(page, words.upcoming.title).getByRole("link", { name: /^sells/ }).waitFor();
  await window.open("/?tenant=retail");
  await until("its own executor", async () => (await figure(page, words.figures.executors).getByRole("link").innerText()) === "1");
  await section(page, words.failures.title).getByText(words.failures.none).waitFor();
  expect(await section(page, words.engine.executors).getByRole("row", { name: /bells/ }).count()).toBe(0);
  expect(window.faults).toEqual([]);
  await window.context.close();
});

it("counts each minute of the coming day, and names the peaks", async () => {
  const key = await world.app("quiet", "chimes");
  const minute = (Math.floor(Date.now() / 60_000) + 187) * 60_000;
  const clock = new Date(minute);
  const cron = `0/6 ${clock.getUTCMinutes()} ${clock.getUTCHours()} * * ?`;
  const made = await world.tasks(key, [{ name: "ten times", handler: "tick", cron, started: true }]);
  const window = await windowOf(browser, world, admin);
  const page = await window.open("/?tenant=quiet");
  const heat = section(page, words.heat.title);
  const shown = instant(minute, "Europe/Berlin", "minute");
  const ten = say(words.heat.at_other, { count: 10 });
  const map = heat.getByRole("img", { name: say(words.heat.label, { total: 10, peaks: `${shown}: ${ten}` }) });
  await map.waitFor();
  // One minute is marked, and it is that one.
  const marked = map.locator("rect:not(.heat-0)");
  expect(await marked.count()).toBe(1);
  await map.scrollIntoViewIfNeeded();
  await marked.hover();
  const reading = heat.locator(".reading");
  await reading.getByText(ten).waitFor();
  expect(Date.parse((await reading.locator("time").getAttribute("datetime")) ?? "")).toBe(minute);
  await window.picture("overview-heat");
  const peaks = heat.getByRole("list").filter({ has: page.getByRole("link") });
  expect(await peaks.getByRole("listitem").count()).toBe(1);
  expect(Date.parse((await peaks.locator("time").getAttribute("datetime")) ?? "")).toBe(minute);
  await peaks.getByRole("link", { name: say(words.heat.peak_tasks, { name: "ten times", count: 10 }) }).click();
  await page.getByRole("heading", { level: 1, name: "ten times" }).waitFor();
  got(await world.api.POST("/tasks/{id}/stop", { params: { path: { id: made.get("ten times") ?? "" } } }));
  expect(window.faults).toEqual([]);
  await window.context.close();
});

// A minute is counted half a minute after its end: what is about figures waits once.
it("counts what has fired: verdict, figures, charts, CSV", { timeout: 200_000 }, async () => {
  const window = await windowOf(browser, world, admin);
  const page = await window.open("/");
  const perSecond = figure(page, words.figures.per_second).locator(".figure-value");
  // They come by themselves, as soon as they are there.
  await until("figures of the first minute", async () => Number(await perSecond.innerText()) > 0, 150_000);
  const verdict = page.locator('[data-verdict="runs_failed"]');
  await verdict.waitFor();
  expect(await verdict.innerText()).toMatch(/\d+ runs? failed in the last hour/);
  const all = Number((await figure(page, words.figures.success).innerText()).match(/([\d,]+) fires/)?.[1]);
  await window.picture("overview-counted");
  await window.open("/?tenant=retail");
  // A machine that is busy with something else may start one late; that is said then.
  await page.locator('[data-verdict="all_well"], [data-verdict="runs_late"]').waitFor();
  const success = figure(page, words.figures.success);
  await success.getByText("100 %").waitFor();
  const own = Number((await success.innerText()).match(/([\d,]+) fires/)?.[1]);
  expect(own).toBeGreaterThan(0);
  expect(own).toBeLessThan(all);

  await window.open("/statistics?tenant=demo");
  await page.locator("figure.chart canvas").nth(2).waitFor();
  // Drawn: something coloured stands on each canvas; axes and grid are grey.
  const painted = await page.locator("figure.chart canvas").evaluateAll((charts) =>
    charts.map((each) => {
      const canvas = each as HTMLCanvasElement;
      const { data } = canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height) ?? { data: new Uint8ClampedArray() };
      for (let at = 0; at < data.length; at += 4) {
        const [red = 0, green = 0, blue = 0, opacity = 0] = data.subarray(at, at + 4);
        if (opacity > 128 && Math.max(red, green, blue) - Math.min(red, green, blue) > 60) return true;
      }
      return false;
    }),
  );
  expect(painted).toEqual([true, true, true]);
  expect(await window.axe()).toEqual([]);
  await window.picture("statistics-counted");
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: en.statistics.download }).click()]);
  expect(download.suggestedFilename()).toBe("carillon-demo-1h-1m.csv");
  const [head = "", ...lines] = (await readFile(await download.path(), "utf8")).trimEnd().split("\r\n");
  expect(head).toMatch(/^start,start_ms,fires,succeeded,failed,/);
  const query = { tenant: "demo", from: Date.now() - 3_600_000, until: Date.now(), step: "1m" } as const;
  const { items } = got(await world.api.GET("/statistics", { params: { query } }));
  const known = new Map(items.map((point) => [point.start, point]));
  expect(lines.length).toBeGreaterThan(0);
  for (const line of lines) {
    const [start = "", at, fires] = line.split(",");
    expect(Date.parse(start)).toBe(Number(at));
    expect(known.get(Number(at))?.fires, line).toBe(Number(fires));
  }
  expect(window.faults).toEqual([]);
  await window.context.close();
});
