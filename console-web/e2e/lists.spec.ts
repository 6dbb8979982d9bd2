/** What waits or could not be read never looks like nothing; lists fit the screens that they are read on. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import en from "../src/i18n/en";
import { startBrowser, windowOf } from "./harness/browser";
import { until } from "./harness/process";
import { World, type Person } from "./harness/world";
import { choose, say } from "./harness/words";

const words = en.common;
const PHONE = { width: 390, height: 844 };

let world: World;
let browser: Browser;
let admin: Person;

beforeAll(async () => {
  [world, browser] = await Promise.all([World.start(), startBrowser()]);
  admin = await world.admin();
  const key = await world.app("demo", "bells");
  await world.executor(key);
  const tasks = await world.tasks(key, [
    { name: "a task whose name is longer than a column of a list is wide", handler: "fail", cron: "* * * * * ?", max_retries: 0, started: true },
  ]);
  await world.log([...tasks.values()][0] ?? "", "failed");
});

afterAll(async () => {
  await browser.close();
  await world.end();
});

function section(page: Page, title: string) {
  return page.locator("#content section").filter({ has: page.getByRole("heading", { name: title, exact: true }) });
}

it("shows that failures are on their way, and that they could not be read", async () => {
  const window = await windowOf(browser, world, admin);
  const { page } = window;
  let answer: "none" | "broken" | "right" = "none";
  const held: (() => void)[] = [];
  await page.route("**/api/v1/task-logs?**", async (route) => {
    if (answer === "none") await new Promise<void>((resolve) => held.push(resolve));
    if (answer === "right") return route.continue();
    return route.fulfill({ status: 400, contentType: "application/problem+json", body: JSON.stringify({ status: 400, title: "no", detail: "the node says no" }) });
  });
  await window.open("/?tenant=demo");
  const failures = section(page, en.overview.failures.title);
  await failures.locator(".ant-skeleton").waitFor();
  expect(await failures.getAttribute("aria-busy")).toBe("true");
  expect(await failures.innerText()).not.toContain(en.overview.failures.none);
  await window.picture("overview-waits");
  expect(await window.axe()).toEqual([]);
  answer = "broken";
  for (const release of held) release();
  await failures.getByText(words.not_known).waitFor();
  await failures.getByText("the node says no").waitFor();
  await window.settled();
  await window.picture("overview-not-known");
  expect(await window.axe()).toEqual([]);
  answer = "right";
  // What changes has it read again by itself.
  await failures.getByRole("listitem").first().waitFor();
  expect(await failures.getByText(words.not_known).count()).toBe(0);
  expect(window.faults).toEqual([]);
  await window.context.close();
});

it("does not settle before the overview has its parts", async () => {
  const window = await windowOf(browser, world, admin);
  const page = await window.open("/?tenant=demo");
  await window.settled();
  expect(await section(page, en.overview.failures.title).getByRole("listitem").count()).toBeGreaterThan(0);
  expect(await page.locator("dl.figures .figure-value").first().innerText()).not.toBe("–");
  await window.context.close();
});

it("folds the filters on a phone, and says how many are set", async () => {
  const window = await windowOf(browser, world, admin, PHONE);
  for (const [path, list] of [["/logs?tenant=demo&status=failed", en.logs.list], ["/audit?tenant=demo&kind=task", en.audit.entries]] as const) {
    const page = await window.open(path);
    const first = page.getByRole("region", { name: list }).getByRole("listitem").first();
    await first.waitFor();
    // What comes later, on a busy machine, may push it down for a moment.
    await expect.poll(async () => (await first.boundingBox())?.y, { message: path, timeout: 30_000 }).toBeLessThan(280);
    const button = page.getByRole("button", { name: say(words.filters_set, { count: 1 }) });
    const filters = page.getByRole("search", { name: words.filters });
    expect(await filters.count()).toBe(0);
    await button.click();
    await filters.waitFor();
    expect(await button.getAttribute("aria-expanded")).toBe("true");
    await window.picture(`filters-${path.slice(1, 5)}-390`);
    expect(await window.axe()).toEqual([]);
    await button.click();
    await filters.waitFor({ state: "hidden" });
    await page.getByRole("button", { name: words.clear_filters }).click();
    await page.getByRole("button", { name: words.filters, exact: true }).waitFor();
    expect(new URL(page.url()).search).toBe("?tenant=demo");
  }
  const page = await window.open("/logs?tenant=demo");
  await page.getByRole("button", { name: words.filters, exact: true }).click();
  await choose(page, page.getByRole("combobox", { name: words.status, exact: true }), words.log_status.succeeded);
  await page.getByText(words.empty_filtered).waitFor();
  await page.getByRole("button", { name: say(words.filters_set, { count: 1 }) }).waitFor();
  expect(window.faults).toEqual([]);
  await window.context.close();
});

it("shows every column of task logs on a screen of 1280 px", async () => {
  for (const language of ["en", "zh"] as const) {
    const window = await windowOf(browser, world, admin, { language });
    const page = await window.open("/logs?tenant=demo");
    await page.locator("[data-row-key]").first().waitFor();
    // Many rows have a window of their own with a bar beside it.
    const area = page.locator(".ant-table-tbody-virtual-holder, .ant-table-content").first();
    await until("many rows", async () => (await page.locator("[data-row-key]").count()) > 8);
    await window.picture(`logs-columns-${language}`);
    const table = await page.locator(".ant-table-container").boundingBox();
    const last = await page.locator(".ant-table-thead th").last().boundingBox();
    expect((last?.x ?? 0) + (last?.width ?? 0)).toBeLessThanOrEqual((table?.x ?? 0) + (table?.width ?? 0) + 1);
    expect(await area.evaluate((element) => element.scrollWidth - element.clientWidth)).toBeLessThanOrEqual(0);
    const reason = page.locator(".log-reason").first();
    expect(await reason.getAttribute("title")).toBe(await reason.innerText());
    expect(window.faults).toEqual([]);
    await window.context.close();
  }
});
