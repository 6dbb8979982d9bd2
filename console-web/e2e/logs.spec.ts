/** Task logs: found by filters, told step by step, stopped, run again; a long list that stays light. */
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import en from "../src/i18n/en";
import { openWindow, show, startBrowser, windowOf } from "./harness/browser";
import { until } from "./harness/process";
import { got, World } from "./harness/world";
import { choose, dialog, like, say } from "./harness/words";

const LONG = 2_500;
const words = en.logs;

let world: World;
let browser: Browser;
let session: Awaited<ReturnType<BrowserContext["storageState"]>>;
let tasks: Map<string, string>;

function task(name: string): string {
  return tasks.get(name) ?? "";
}

/** A window of a user who is already signed in. */
function opened() {
  return openWindow(browser, world, {}, session);
}

/** Runs a task by hand; gives the log's id. */
async function run(name: string, more: { params?: string; delay_ms?: number } = {}): Promise<string> {
  const body = { at: null, delay_ms: null, idempotency_key: null, priority: null, ...more };
  return got(await world.api.POST("/tasks/{id}/run", { params: { path: { id: task(name) } }, body })).log;
}

async function logOf(id: string) {
  return got(await world.api.GET("/task-logs/{id}", { params: { path: { id } } }));
}

/** Waits until the node has it in that state. */
async function ended(id: string, status: string) {
  return until(`log ${id} to be ${status}`, async () => {
    const log = await logOf(id);
    return log.status === status && log;
  });
}

function rows(page: Page) {
  return page.getByRole("region", { name: words.list }).locator(".ant-table-row");
}

beforeAll(async () => {
  [world, browser] = await Promise.all([World.start(), startBrowser()]);
  const first = await windowOf(browser, world, await world.admin());
  session = await first.context.storageState();
  await first.context.close();
  const key = await world.app("demo", "bells");
  await world.executor(key);
  await world.executor(key);
  tasks = await world.tasks(key, [
    { name: "flaky", handler: "flaky", schedule: "none", params: '{"succeed_at":9}', max_retries: 2, retry_interval_ms: 200, started: true },
    { name: "fails", handler: "fail", schedule: "none", max_retries: 0, started: true },
    { name: "long", handler: "sleep", schedule: "none", params: "600000", started: true },
    { name: "echo", handler: "echo", schedule: "none", params: "of the task", started: true },
    { name: "in shards", handler: "sharded", schedule: "none", routing: "sharding", started: true },
    { name: "often", handler: "tick", cron: "* * * * * ?" },
  ]);
  const until_ = Math.floor(Date.now() / 1_000) * 1_000 - 60_000;
  const body = { from: until_ - LONG * 1_000, until: until_, max_concurrent: 500 };
  got(await world.api.POST("/tasks/{id}/backfills", { params: { path: { id: task("often") } }, body }));
});

afterAll(async () => {
  await browser.close();
  await world.end();
});

it("keeps its filters in the address: a reload and a copied link show the same", async () => {
  const failed = [await run("fails"), await run("fails"), await run("flaky")];
  for (const id of failed) await ended(id, "failed");
  await ended(await run("echo"), "succeeded");
  const window = await opened();
  const page = await window.open("/logs?tenant=demo");
  await window.settled();
  await choose(page, page.getByRole("combobox", { name: en.common.status, exact: true }), en.common.log_status.failed);
  await choose(page, page.getByRole("combobox", { name: words.reason, exact: true }), words.reason_short.handler_failed);
  await until("both tasks", async () => (await rows(page).count()) === 3);
  await choose(page, page.getByRole("combobox", { name: en.common.task, exact: true }), "fails");
  await until("one task's failures", async () => (await rows(page).count()) === 2);
  const answer = page.waitForResponse((response) => {
    const url = new URL(response.url());
    return url.pathname === "/api/v1/task-logs" && url.searchParams.has("from");
  });
  await page.getByText(words.range["1h"], { exact: true }).click();
  await answer;
  await until("those of the last hour", async () => (await rows(page).count()) === 2);
  const search = new URL(page.url()).searchParams;
  expect(Object.fromEntries(search)).toEqual({ tenant: "demo", status: "failed", reason: "handler_failed", task: task("fails"), range: "1h" });

  const bar = page.getByRole("search", { name: en.common.filters });
  // Names come a moment after the rows.
  const node = got(await world.api.GET("/nodes")).items[0]?.name ?? "";
  await until("the node's name", async () => (await rows(page).getByText(node, { exact: true }).count()) === 2);
  await until("the executors' names", async () => (await rows(page).getByText(/127\.0\.0\.1:\d+/).count()) === 2);
  const texts = async () => ({ bar: await bar.innerText(), rows: await rows(page).allInnerTexts() });
  const shown = await texts();
  expect(shown.bar).toContain("fails");
  await page.reload();
  await expect.poll(texts, { timeout: 30_000 }).toEqual(shown);
  await page.getByRole("button", { name: words.copy_link }).click();
  await page.getByText(words.link_copied).waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  expect(link.startsWith(`${world.url}/logs?`)).toBe(true);
  // Opened tomorrow, it shows the hour that was meant, not the last one.
  const linked = new URL(link).searchParams;
  expect(Number(linked.get("until")) - Number(linked.get("from"))).toBe(3_600_001);
  await run("fails").then((id) => ended(id, "failed"));
  await page.goto(link);
  await expect.poll(() => rows(page).allInnerTexts(), { timeout: 30_000 }).toEqual(shown.rows);

  await page.getByRole("button", { name: en.common.clear_filters }).click();
  await until("all of them", async () => (await rows(page).count()) > 3);
  expect(new URL(page.url()).search).toBe("?tenant=demo");
  expect(window.faults).toEqual([]);
  await window.context.close();
});

it("says of filters that the node does not know what to do", async () => {
  const window = await opened();
  const page = await window.open("/logs?tenant=demo&status=borken");
  await page.getByRole("alert").filter({ hasText: "borken" }).waitFor();
  await window.picture("logs-wrong-filter");
  await page.getByRole("button", { name: en.common.clear_filters }).click();
  await rows(page).first().waitFor();
  expect(window.faults).toEqual([]);
  await window.context.close();
});

it("tells a failure step by step, and why in plain words", async () => {
  const window = await opened();
  const id = await run("flaky");
  // Open while it goes on: the attempts come by themselves.
  const page = await window.open(`/logs/${id}`);
  await ended(id, "failed");
  const why = page.getByRole("alert").filter({ hasText: en.reasons.handler_failed });
  await why.getByText(words.advice.handler_failed).waitFor();
  await why.getByText("attempt 3 fails; 9 will succeed").waitFor();
  const steps = page.locator("#content ol").first().getByRole("listitem");
  await steps.filter({ hasText: like(words.step.ended_after) }).getByText(en.common.log_status.failed).waitFor();
  // Names come a moment after the log.
  const node = got(await world.api.GET("/nodes")).items[0]?.name ?? "";
  await steps.filter({ hasText: like(words.step.claimed_by, { node, attempt: 3 }) }).waitFor();
  const story = await steps.allInnerTexts();
  const { attempts } = await logOf(id);
  expect(attempts).toHaveLength(3);
  const expected = [
    like(words.step.written_by),
    new RegExp(words.step.due),
    ...[1, 2, 3].flatMap((attempt) => [
      ...(attempt > 1 ? [like(words.step.due_again, { attempt })] : []),
      new RegExp(words.step.started),
      ...(attempt < 3 ? [like(words.step.failed_after, { attempt })] : []),
    ]),
    like(words.step.ended_after),
  ];
  // Each in its turn, whatever stands between them.
  let from = 0;
  // Only the last claim is kept: it is that of the third attempt, and says so.
  expect(story.filter((text) => like(words.step.claimed_by, { node, attempt: 3 }).test(text))).toHaveLength(1);
  for (const step of expected) {
    const at = story.findIndex((text, index) => index >= from && step.test(text));
    expect(at, `${String(step)} after step ${from} of ${story.join(" | ")}`).toBeGreaterThanOrEqual(from);
    from = at + 1;
  }
  for (const attempt of [1, 2]) {
    // An executor may have it before it is due: that stands where it belongs.
    await steps.filter({ hasText: like(words.step.dispatched_to_by, { attempt, node }) }).waitFor();
    const step = steps.filter({ hasText: like(words.step.failed_after, { attempt }) });
    expect(await step.innerText()).toContain(`attempt ${attempt} fails; 9 will succeed`);
    expect(await step.innerText()).toContain(en.reasons.handler_failed);
  }
  await page.getByText(say(words.attempts_of, { attempts: 3, failures: 3 })).waitFor();
  expect(await window.axe()).toEqual([]);
  await window.picture("logs-failed-story");
  expect(window.faults).toEqual([]);
  await window.context.close();
});

it("cancels what waits and kills what runs, after asking", async () => {
  const waits = await run("echo", { delay_ms: 3_600_000 });
  const window = await opened();
  const page = await window.open(`/logs/${waits}`);
  await window.settled();
  expect(await page.getByRole("button", { name: words.kill_run }).count()).toBe(0);
  await page.getByRole("button", { name: words.cancel_run }).click();
  const question = dialog(page, words.cancel_question);
  await question.getByText(words.cancel_text).waitFor();
  // Cancelling changes nothing.
  await question.getByRole("button", { name: en.common.cancel, exact: true }).click();
  await question.waitFor({ state: "hidden" });
  expect((await logOf(waits)).status).not.toBe("cancelled");
  await page.getByRole("button", { name: words.cancel_run }).click();
  await question.getByRole("button", { name: words.cancel_run }).click();
  await page.getByText(words.cancel_done).waitFor();
  await page.getByText(en.reasons.cancelled_manually).first().waitFor();
  await page.getByRole("button", { name: words.cancel_run }).waitFor({ state: "hidden" });
  expect(await logOf(waits)).toMatchObject({ status: "cancelled", reason: "cancelled_manually" });

  const runs = await run("long");
  await ended(runs, "dispatched");
  await window.open(`/logs/${runs}`);
  await page.getByRole("button", { name: words.kill_run }).click();
  const kill = dialog(page, words.kill_question);
  await kill.getByText(words.kill_text).waitFor();
  expect(await window.axe()).toEqual([]);
  await window.picture("logs-kill");
  await kill.getByRole("button", { name: words.kill_run }).click();
  await page.getByText(words.kill_told).waitFor();
  await ended(runs, "cancelled");
  await page.getByText(en.reasons.cancelled_manually).first().waitFor();
  await page.getByRole("button", { name: words.kill_run }).waitFor({ state: "hidden" });
  expect(window.faults).toEqual([]);
  await window.context.close();
});

it("runs again with the parameters that the run had", async () => {
  const id = await run("echo", { params: "of this run alone" });
  await ended(id, "succeeded");
  const window = await opened();
  const page = await window.open(`/logs/${id}`);
  await page.getByRole("button", { name: words.again }).click();
  const question = dialog(page, say(words.again_question, { task: "echo" }));
  await question.getByText("of this run alone").waitFor();
  await window.picture("logs-again");
  await question.getByRole("button", { name: words.again }).click();
  const notice = page.getByRole("status").filter({ hasText: words.again_started.slice(0, 20) });
  const link = notice.getByRole("link");
  const next = (await link.innerText()).trim();
  expect(next).not.toBe(id);
  expect(await ended(next, "succeeded")).toMatchObject({ task: task("echo"), params: "of this run alone", output: "of this run alone", trigger: "manual" });
  await link.click();
  await page.getByRole("heading", { level: 1, name: say(words.title, { id: next }) }).waitFor();
  await page.getByText(words.own_parameters, { exact: true }).waitFor();
  expect(window.faults).toEqual([]);
  await window.context.close();
});

it("starts one run where the answer was lost and one tries again", async () => {
  const id = await run("echo", { params: "once" });
  await ended(id, "succeeded");
  const window = await opened();
  const page = await window.open(`/logs/${id}`);
  await page.route("**/api/v1/tasks/*/run", async (route) => {
    await route.fetch();
    await route.abort();
  });
  await page.getByRole("button", { name: words.again }).click();
  const question = dialog(page, say(words.again_question, { task: "echo" }));
  await question.getByRole("button", { name: words.again }).click();
  await page.getByText(en.common.failure.unreachable_change_help).waitFor();
  await page.unroute("**/api/v1/tasks/*/run");
  await question.getByRole("button", { name: words.again }).click();
  const link = page.getByRole("status").filter({ hasText: words.again_started.slice(0, 20) }).getByRole("link");
  const next = (await link.innerText()).trim();
  await ended(next, "succeeded");
  const { items } = got(await world.api.GET("/task-logs", { params: { query: { task: task("echo"), limit: 10 } } }));
  expect(items.filter((log) => log.params === "once").map((log) => log.id).sort()).toEqual([id, next].sort());
  await window.context.close();
});

it("shows a sharded run as one row, and unfolds it", async () => {
  const id = await run("in shards");
  await ended(id, "succeeded");
  const window = await opened();
  const page = await window.open(`/logs?tenant=demo&task=${task("in shards")}`);
  await page.getByText(say(words.shards_done, { ended: 2, total: 2 })).waitFor();
  expect(await rows(page).count()).toBe(1);
  const shards = rows(page).filter({ hasText: /shard [01] of 2|^[01]/ });
  await rows(page).first().getByRole("button").first().click();
  await until("two shards", async () => (await shards.count()) === 2);
  expect(await window.axe()).toEqual([]);
  await window.picture("logs-unfolded");
  await shards.last().getByRole("link").first().click();
  await page.getByText(say(words.shard_of, { index: 1, total: 2 })).first().waitFor();
  await page.getByRole("region", { name: words.result }).getByText("shard 1 of 2", { exact: true }).waitFor();
  await page.getByRole("link", { name: say(words.parent_run, { id }) }).click();
  await page.getByText(say(words.progress, { total: 2, started: 2, ended: 2, succeeded: 2 })).waitFor();
  expect(window.faults).toEqual([]);
  await window.context.close();
});

it("goes on when more is new than a page holds, where no limit moves with the time", async () => {
  // One that was cancelled before its time stays on top; its neighbours do not tell what is missing below it.
  const top = await run("echo", { delay_ms: 3_600_000 });
  got(await world.api.POST("/task-logs/{id}/cancel", { params: { path: { id: top } } }));
  const window = await opened();
  const page = await window.open(`/logs?tenant=demo&task=${task("echo")}&range=all`);
  const link = (id: string) => rows(page).locator(`a[href*="/logs/${id}"]`);
  await link(top).waitFor();
  // Nobody looks meanwhile: what is new comes at once.
  await show(page, "hidden");
  const started: string[] = [];
  for (let count = 0; count < 101; count++) started.push(await run("echo", { params: String(count) }));
  const [first = "", last = ""] = [started[0], started.at(-1)];
  await ended(last, "succeeded");
  await show(page, "visible");
  await link(last).waitFor();
  const next = await run("echo");
  await link(next).waitFor();
  // Not one of them is missing further down.
  const list = page.getByRole("region", { name: words.list });
  await list.locator(".ant-table-tbody-virtual-holder").hover();
  await until("the first of them", async () => {
    await page.mouse.wheel(0, 1_000);
    return (await link(first).count()) === 1;
  });
  expect(window.faults).toEqual([]);
  await window.context.close();
});

it("says that a run could not be read again, and shows what it was", async () => {
  const window = await opened();
  const id = await run("long");
  const page = await window.open(`/logs/${id}`);
  await page.getByRole("button", { name: words.kill_run, exact: true }).waitFor();
  await page.route(`**/api/v1/task-logs/${id}`, (route) => route.fulfill({ status: 503, contentType: "application/problem+json", body: JSON.stringify({ status: 503, title: "no", detail: "the database is away" }) }));
  await page.getByRole("alert").getByText("the database is away", { exact: true }).waitFor();
  await page.getByRole("heading", { level: 1, name: say(words.title, { id }) }).waitFor();
  await page.unroute(`**/api/v1/task-logs/${id}`);
  await page.getByRole("alert").getByText("the database is away", { exact: true }).waitFor({ state: "hidden" });
  got(await world.api.POST("/task-logs/{id}/cancel", { params: { path: { id } } }));
  await window.context.close();
});

it("chooses tasks here and in the statistics, whichever one opens first", async () => {
  const window = await opened();
  const page = await window.open("/logs?tenant=demo");
  const menu = page.getByRole("navigation", { name: en.common.menu });
  const offers = async (name: string) => {
    await page.getByRole("combobox", { name, exact: true }).click();
    await page.locator(".ant-select-dropdown:visible .ant-select-item-option").getByText("flaky", { exact: true }).waitFor();
    await page.keyboard.press("Escape");
  };
  await offers(en.common.task);
  await menu.getByRole("link", { name: en.common.pages.statistics }).click();
  await page.getByRole("heading", { level: 1, name: like(en.common.pages.statistics) }).waitFor();
  await offers(en.statistics.task);
  await menu.getByRole("link", { name: en.common.pages.logs }).click();
  await page.getByRole("heading", { level: 1, name: en.common.pages.logs }).waitFor();
  await offers(en.common.task);
  expect(window.faults).toEqual([]);
  await window.context.close();
});

it("shows what this page still took for something to come when it was told of it", async () => {
  const window = await opened();
  // The node's word about the time came late, as it does when a page has much to draw.
  await window.page.addInitScript(() => {
    const late = (event: MessageEvent<string>) => {
      const said = JSON.parse(event.data) as { cluster_time: number };
      return new MessageEvent("hello", { data: JSON.stringify({ ...said, cluster_time: said.cluster_time - 3_000 }) });
    };
    // eslint-disable-next-line @typescript-eslint/unbound-method -- it is called with its object, below
    const listen = EventSource.prototype.addEventListener as (name: string, listener: (event: MessageEvent<string>) => void) => void;
    Object.assign(EventSource.prototype, {
      addEventListener(this: EventSource, name: string, listener: (event: MessageEvent<string>) => void) {
        listen.call(this, name, name === "hello" ? (event) => listener(late(event)) : listener);
      },
    });
  });
  const page = await window.open("/logs?tenant=demo");
  await rows(page).first().waitFor();
  await window.settled();
  const id = await run("echo");
  await ended(id, "succeeded");
  await rows(page).first().locator(`a[href*="/logs/${id}"]`).waitFor();
  expect(window.faults).toEqual([]);
  await window.context.close();
});

it("stays light over thousands of rows, and says what came meanwhile", async () => {
  await until("the long list to be written", async () => {
    const found = got(await world.api.GET("/tasks/{id}/backfills", { params: { path: { id: task("often") } } }));
    return found.items[0]?.status === "done";
  });
  await until("all of it to have ended", async () => {
    const open = await Promise.all(
      (["init", "queued", "dispatched"] as const).map((status) => world.api.GET("/task-logs", { params: { query: { task: task("often"), status, limit: 1 } } })),
    );
    return open.every((answer) => got(answer).items.length === 0);
  });
  const window = await opened();
  const { page } = window;
  const asked: URL[] = [];
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.pathname === "/api/v1/task-logs") asked.push(url);
  });
  await window.open("/logs?tenant=demo");
  await rows(page).first().waitFor();
  await page.evaluate(() => Object.assign(globalThis, { notReloaded: true }));

  // At the top, what is new comes by itself.
  const first = await run("echo", { params: "first" });
  await rows(page).first().locator(`a[href*="/logs/${first}"]`).waitFor();
  await ended(first, "succeeded");
  await rows(page).first().getByText(en.common.log_status.succeeded).waitFor();

  asked.length = 0;
  const list = page.getByRole("region", { name: words.list });
  const box = list.locator(".ant-table-tbody-virtual-holder");
  const read = async () => Number(/\d+/.exec(await list.getByText(/\d+ rows loaded|End of list/).innerText())?.[0] ?? LONG);
  let most = 0;
  await box.hover();
  const known = Math.floor(LONG / 2);
  await until("half of it", async () => {
    await page.mouse.wheel(0, 8_000);
    most = Math.max(most, await rows(page).count());
    return (await read()) > known;
  });
  const limits = asked.map((url) => Number(url.searchParams.get("limit")));
  const deeper = asked.filter((url) => url.searchParams.has("before"));
  expect(Math.max(...limits)).toBeLessThanOrEqual(500);
  // Read as one scrolls: no page twice, none that was not needed yet.
  expect(new Set(deeper.map(String)).size).toBe(deeper.length);
  expect(deeper.length * (limits[0] ?? 0)).toBeGreaterThanOrEqual(known - 200);
  expect(deeper.length * (limits[0] ?? 0)).toBeLessThan(LONG);
  expect(most).toBeLessThan(100);

  // What stood there is nothing new.
  expect(await page.getByRole("status").filter({ hasText: /newer task log/ }).count()).toBe(0);

  // Further down, rows stay where they are, and a banner says what is new.
  const second = await run("echo", { params: "second" });
  const banner = page.getByRole("status").filter({ hasText: say(words.newer_one, { count: 1 }) });
  await banner.waitFor();
  await window.picture("logs-newer");
  expect(await page.locator(`a[href*="/logs/${second}"]`).count()).toBe(0);
  await banner.getByRole("button", { name: words.show_newer }).click();
  await rows(page).first().locator(`a[href*="/logs/${second}"]`).waitFor();
  await banner.waitFor({ state: "hidden" });

  // Another list begins at its top, and is watched.
  await box.hover();
  await until("somewhere further down", async () => {
    await page.mouse.wheel(0, 2_000);
    return (await box.evaluate((element) => element.scrollTop)) > 1_000;
  });
  await page.getByText(words.range["1h"], { exact: true }).click();
  await rows(page).first().locator(`a[href*="/logs/${second}"]`).waitFor();
  const third = await run("echo", { params: "third" });
  await rows(page).first().locator(`a[href*="/logs/${third}"]`).waitFor();
  expect(await page.evaluate(() => (globalThis as { notReloaded?: boolean }).notReloaded)).toBe(true);
  expect(window.faults).toEqual([]);
  await window.context.close();
});
