/** Chinese and English: each complete, also where Ant Design or the node speaks; changed at once, and kept. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import en from "../src/i18n/en";
import zh from "../src/i18n/zh";
import { openWindow, startBrowser, Watched, windowOf } from "./harness/browser";
import { chinese, english, read, type Texts } from "./harness/reading";
import { choose, dialog, like, say, wrong } from "./harness/words";
import { got, World, type Person } from "./harness/world";
import { makeScene, places, type Scene } from "./scene";
import { rooms } from "./rooms";

let world: World;
let browser: Browser;
let admin: Person;
let scene: Scene;
let all: Record<string, string>;

beforeAll(async () => {
  [world, browser] = await Promise.all([World.start(), startBrowser()]);
  admin = await world.admin();
  scene = await makeScene(world);
  await world.person("vera", "viewer", "demo");
  const users = got(await world.api.GET("/users")).items;
  const window = await windowOf(browser, world, admin);
  // Only a user who is signed in has tokens.
  await window.page.evaluate(async () => {
    const me = (await (await fetch("/api/v1/session")).json()) as { csrf: string };
    const body = JSON.stringify({ name: "exporter", tenant: "demo", permissions: ["tasks.read"], expires_at: Date.now() + 86_400_000 });
    await fetch("/api/v1/account/tokens", { method: "POST", headers: { "content-type": "application/json", "x-csrf-token": me.csrf }, body });
  });
  expect(got(await world.api.GET("/tokens")).items).toHaveLength(1);
  await window.context.close();
  all = {
    ...places(scene, users.find((user) => user.name === "vera")?.id ?? ""),
    calendar: "/calendars?tenant=demo&calendar=holidays",
    "calendar-new": "/calendars?tenant=demo&new=1",
    nowhere: "/there/is/nothing",
  };
});

afterAll(async () => {
  await browser.close();
  await world.end();
});

/** What the scene has put on the pages, and messages of its runs: nobody translates that. */
const DATA = ["settles the day", "database upgrade", "days without business", "every second", "in shards", "always fails", "after nightly", "no such handler", "platform admin", "tenant admin", "the demo fails on purpose", "echo, fail, fail_n", "1 online, but none has handler `missing`"];

/** Every page and what opens on it: what is in the wrong language there. */
async function walk(language: "en" | "zh"): Promise<string[]> {
  const texts: Texts = language === "zh" ? zh : en;
  const window = await windowOf(browser, world, admin, { language });
  const inside = rooms(texts);
  const findings: string[] = [];
  let seen = 0;
  for (const [name, address] of Object.entries(all)) {
    const look = async (what: string) => {
      const said = await read(window.page);
      seen += 1;
      findings.push(...(language === "zh" ? english(said, DATA) : chinese(said)).map((finding) => `${what}: ${finding}`));
    };
    await window.open(address);
    await (name === "nowhere" ? window.page.getByText(texts.common.not_found_title).waitFor() : window.settled());
    await look(name);
    // What does not open is one finding among the others.
    await inside[name]?.(window.page, (what) => look(`${name}, ${what}`)).catch((error: unknown) => findings.push(`${name}: ${String(error)}`));
  }
  expect(seen).toBeGreaterThan(80);
  expect(window.faults).toEqual([]);
  await window.context.close();
  // A finding that stands on every page is one finding.
  const first = new Map(findings.map((finding) => [finding.slice(finding.indexOf(": ")), finding]));
  return [...first.values()];
}

it("no English is left on any page, dialog or drawer in Chinese", async () => {
  expect(await walk("zh")).toEqual([]);
});

it("no Chinese is on any page, dialog or drawer in English", async () => {
  expect(await walk("en")).toEqual([]);
});

/** A window in which the admin reads Chinese. */
const inChinese = () => windowOf(browser, world, admin, { language: "zh" });

it("has Ant Design's own texts in Chinese", async () => {
  const stranger = await openWindow(browser, world, { language: "zh" });
  await stranger.open("/");
  await stranger.page.locator("button[type=submit]").click();
  for (const label of [zh.people.sign_in.name, zh.people.sign_in.password]) {
    await wrong(stranger.page.getByLabel(label, { exact: true })).getByText(`请输入${label}`, { exact: true }).waitFor();
  }
  await stranger.context.close();

  const window = await inChinese();
  const { tokens, picker, roles } = zh.people;
  const page = await window.open("/account?tab=tokens");
  await page.getByRole("button", { name: tokens.create }).click();
  const form = dialog(page, tokens.create_title);
  await choose(page, form.getByLabel(tokens.expiry), tokens.expiry_other);
  await form.getByLabel(tokens.expiry_until, { exact: true }).click();
  const calendar = page.locator(".ant-picker-dropdown");
  expect(await calendar.locator("th").allInnerTexts()).toEqual(["一", "二", "三", "四", "五", "六", "日"]);
  await calendar.getByText(/^\d{4}年$/).waitFor();
  await calendar.getByText(/^\d{1,2}月$/).waitFor();
  expect(await calendar.locator(".ant-picker-footer").innerText()).toMatch(/此刻[^A-Za-z]*确定/);
  expect(english(await read(page), DATA)).toEqual([]);
  await window.picture("languages-calendar");
  await page.keyboard.press("Escape");

  await window.open("/roles?view=matrix");
  await page.getByPlaceholder(picker.search).fill("there is nothing like it");
  await page.getByRole("region", { name: roles.matrix }).locator(".ant-empty-description").getByText("暂无数据", { exact: true }).waitFor();
  await window.open("/tokens");
  await page.getByRole("button", { name: tokens.revoke, exact: true }).click();
  const asked = dialog(page, say(tokens.revoke_question, { name: "exporter" }));
  const labels = await asked.getByRole("button").evaluateAll((found) => found.map((each) => each.getAttribute("aria-label") ?? each.textContent));
  expect(labels.sort()).toEqual([zh.common.cancel, zh.common.close, tokens.revoke].sort());
  await window.picture("languages-confirm");
  expect(window.faults).toEqual([]);
  await window.context.close();
});

it("says in Chinese what the node says in English, and writes instants that everyone reads", async () => {
  const window = await inChinese();
  const { tasks, schedule, people, common, admin: ofAdmin } = zh;
  const page = await window.open("/tenants");
  await page.getByRole("button", { name: ofAdmin.tenants.create }).click();
  const form = dialog(page, ofAdmin.tenants.create_title);
  await form.getByLabel(common.name).fill("demo");
  await form.getByRole("button", { name: common.create }).click();
  const refused = form.getByRole("alert").filter({ hasText: people.refused.title });
  await refused.getByText(people.refused.name_taken).waitFor();

  await window.open("/tasks/new?tenant=demo&app=bells");
  await page.getByRole("radiogroup", { name: schedule.kind.label }).getByText(schedule.kind.cron).click();
  const field = (name: string) => page.getByLabel(name, { exact: true });
  const { label } = tasks.fields;
  const create = page.getByRole("button", { name: tasks.editor.create, exact: true });
  await field(label.cron).fill("0 0 25 * * ?");
  await page.getByText(like(schedule.preview.wrong, { detail: "cron: “时”字段（第 5 列）：25 不在 0 至 23 之间" })).waitFor();
  await create.click();
  await page.getByText(tasks.editor.errors).waitFor();
  for (const name of [label.name, label.handler]) await wrong(field(name)).getByText("须为 1 至 128 个可见字符", { exact: true }).waitFor();
  await wrong(field(label.cron)).getByText(/25 不在 0 至 23 之间/).waitFor();
  expect(english(await read(page), DATA)).toEqual([]);
  await window.picture("languages-refused");
  await field(label.name).fill("nightly");
  await field(label.handler).fill("echo");
  await field(label.cron).fill("0 0 5 * * ?");
  await create.click();
  await wrong(field(label.name)).getByText(tasks.editor.name_taken).waitFor();

  await window.open(`/logs/${scene.failed}`);
  await page.getByText(zh.reasons.handler_failed, { exact: true }).waitFor();
  await page.getByText(zh.logs.advice.handler_failed).waitFor();
  expect(await page.locator("#content time").first().innerText()).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{3})?$/);

  await window.open("/tasks/9999999999");
  const missing = page.getByRole("alert").filter({ hasText: common.failure.not_found });
  await missing.getByText(common.failure.not_found_help).waitFor();

  await window.open("/account?tab=password");
  const { current, next, again, submit } = people.new_password;
  await page.getByLabel(current, { exact: true }).fill("not the one at all");
  for (const name of [next, again]) await page.getByLabel(name, { exact: true }).fill("Another-One-Here-1");
  await page.getByRole("button", { name: submit }).click();
  await wrong(page.getByLabel(current, { exact: true })).getByText("密码不正确", { exact: true }).waitFor();
  expect(window.faults).toEqual([]);
  await window.context.close();
});

/** What a person sees of a choice: the language of the page, and its appearance. */
async function shown(page: Page): Promise<string[]> {
  return page.evaluate(() => [document.documentElement.lang, document.documentElement.dataset.theme ?? "", getComputedStyle(document.documentElement).colorScheme]);
}

async function choices(page: Page, texts: Texts, { language, theme }: { language?: string; theme?: string }): Promise<void> {
  for (const [button, entry] of [[texts.common.language, language], [texts.common.theme, theme]] as const) {
    if (entry === undefined) continue;
    await page.getByRole("button", { name: button, exact: true }).click();
    await page.getByRole("menuitem", { name: entry, exact: true }).click();
  }
}

it("begins in the browser's language, and changes language and appearance at once and for good", async () => {
  const context = await browser.newContext({ locale: "zh-CN", colorScheme: "dark", viewport: { width: 1280, height: 860 }, reducedMotion: "reduce" });
  const window = new Watched(await context.newPage(), context, world);
  const page = await window.open("/");
  await page.getByRole("heading", { level: 2, name: zh.people.sign_in.title }).waitFor();
  expect(await shown(page)).toEqual(["zh-CN", "dark", "dark"]);

  // Nothing is loaded again: what the page holds stays in it.
  const marked = () => page.evaluate(() => Object.hasOwn(globalThis, "stays"));
  const mark = () => page.evaluate(() => Object.assign(globalThis, { stays: true }));
  await mark();
  await page.locator("input[autocomplete=username]").fill(admin.name);
  await choices(page, zh, { language: "English" });
  await page.getByRole("heading", { level: 2, name: en.people.sign_in.title }).waitFor();
  await choices(page, en, { theme: en.common.theme_light });
  expect(await shown(page)).toEqual(["en", "light", "light"]);
  expect(await page.title()).toContain(en.people.sign_in.title);
  expect(await page.locator("input[autocomplete=username]").inputValue()).toBe(admin.name);
  expect(chinese(await read(page))).toEqual([]);
  expect(await marked()).toBe(true);
  await window.signIn(admin);
  await page.locator("#content").waitFor();

  await window.open("/tasks/new?tenant=demo&app=bells");
  await window.settled();
  expect(await shown(page)).toEqual(["en", "light", "light"]);
  await mark();
  await page.getByLabel(en.tasks.fields.label.name, { exact: true }).fill("half typed");
  await page.getByRole("button", { name: en.tasks.editor.create, exact: true }).click();
  await wrong(page.getByLabel(en.tasks.fields.label.handler, { exact: true })).waitFor();
  await choices(page, en, { language: "中文" });
  await page.getByRole("heading", { level: 1, name: zh.tasks.editor.new_title }).waitFor();
  await choices(page, zh, { theme: zh.common.theme_dark });
  expect(await shown(page)).toEqual(["zh-CN", "dark", "dark"]);
  expect(await page.title()).toContain(zh.tasks.editor.new_title);
  expect(english(await read(page), DATA)).toEqual([]);
  expect(await page.getByLabel(zh.tasks.fields.label.name, { exact: true }).inputValue()).toBe("half typed");
  expect(await marked()).toBe(true);

  await page.reload();
  await window.settled();
  expect(await shown(page)).toEqual(["zh-CN", "dark", "dark"]);
  await page.getByRole("button", { name: zh.common.own_account }).click();
  await page.getByRole("menuitem", { name: zh.common.sign_out }).click();
  await page.getByRole("heading", { level: 2, name: zh.people.sign_in.title }).waitFor();
  expect(await shown(page)).toEqual(["zh-CN", "dark", "dark"]);
  await window.signIn(admin);
  await page.locator("#content").waitFor();

  // The same on the page of one's own account, and back to what the system says.
  await window.open("/account?tab=preferences");
  await window.settled();
  await page.locator("#content").getByText("English", { exact: true }).click();
  await page.getByText(en.people.account.preferences_text).waitFor();
  await page.locator("#content").getByText(en.common.theme_light, { exact: true }).click();
  expect(await shown(page)).toEqual(["en", "light", "light"]);
  await page.locator("#content").getByText(en.common.theme_system, { exact: true }).click();
  expect(await shown(page)).toEqual(["en", "dark", "dark"]);
  await page.emulateMedia({ colorScheme: "light" });
  await page.waitForFunction(() => document.documentElement.dataset.theme === "light");
  expect(window.faults).toEqual([]);
  await context.close();
});

it("says in Chinese that the node is gone", async () => {
  const window = await inChinese();
  const page = await window.open("/tasks?tenant=demo");
  await window.settled();
  await world.endNode();
  await page.getByText(like(zh.common.live.disconnected)).waitFor();
  expect(english(await read(page), DATA)).toEqual([]);
  await page.getByText(zh.common.pages.statistics, { exact: true }).click();
  await page.getByText(zh.common.failure.unreachable).first().waitFor();
  await page.getByText(zh.common.failure.unreachable_help).first().waitFor();
  await window.context.close();
});
