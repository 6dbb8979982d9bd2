/** Everything with the keyboard alone, and one always sees where one is. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import en from "../src/i18n/en";
import { openWindow, startBrowser, type Watched } from "./harness/browser";
import { dialog, like, say } from "./harness/words";
import { World, type Person } from "./harness/world";

const { common, people, tasks } = en;

let world: World;
let browser: Browser;
let admin: Person;
let bell: string;
let window: Watched;
let page: Page;

beforeAll(async () => {
  [world, browser] = await Promise.all([World.start(), startBrowser()]);
  admin = await world.admin();
  const key = await world.app("demo", "bells");
  await world.executor(key);
  const made = await world.tasks(key, [{ name: "little bell", handler: "echo", schedule: "none", params: "ding", started: true }]);
  bell = made.get("little bell") ?? "";
  window = await openWindow(browser, world);
  page = await window.open("/tasks?tenant=demo");
});

afterAll(async () => {
  await browser.close();
  await world.end();
});

interface Here {
  tag: string;
  name: string;
  id: string;
  isShown: boolean;
  inDialog: boolean;
}

/** Where the keyboard is, and whether one sees that. */
async function here(): Promise<Here> {
  return page.evaluate(() => {
    const element = document.activeElement ?? document.body;
    const box = element.getBoundingClientRect();
    // The mark may be at what surrounds the control, as with inputs and selects.
    const marked = [element, element.parentElement, element.parentElement?.parentElement, element.nextElementSibling].some((each) => {
      if (each == null) return false;
      const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(each);
      return (outlineStyle !== "none" && Number.parseFloat(outlineWidth) > 0) || boxShadow !== "none";
    });
    return {
      tag: element.tagName.toLowerCase(),
      name: (element.getAttribute("aria-label") ?? element.textContent).trim(),
      id: element.id,
      isShown: marked && box.right > 0 && box.bottom > 0 && box.left < innerWidth && box.top < innerHeight,
      inDialog: element.closest("[role=dialog]") !== null,
    };
  });
}

/** Goes on with Tab until it is there; every place on the way must be seen. */
async function tabTo(name: string, key = "Tab"): Promise<void> {
  const seen: string[] = [];
  for (let steps = 0; steps < 120; steps += 1) {
    await page.keyboard.press(key);
    const now = await here();
    // Between the page's end and its beginning is the browser itself.
    if (now.tag !== "body") expect(now, `after ${seen.join(", ")}`).toMatchObject({ isShown: true });
    if (now.name === name) return;
    seen.push(now.name === "" ? now.tag : now.name);
  }
  throw new Error(`${name} is not reached: ${seen.join(", ")}`);
}

/** Goes down in the open menu to that entry, and takes it. */
async function chooseInMenu(entry: string): Promise<void> {
  await page.waitForFunction(() => document.activeElement?.closest("[role=menu]") != null);
  for (let steps = 0; steps < 12 && (await here()).name !== entry; steps += 1) {
    const before = await page.evaluate(() => document.activeElement?.textContent ?? "");
    await page.keyboard.press("ArrowDown");
    // The menu moves the focus a moment after the key.
    await page.waitForFunction((last) => (document.activeElement?.textContent ?? "") !== last, before);
  }
  expect(await here()).toMatchObject({ name: entry, isShown: true });
  await page.keyboard.press("Enter");
}

it("signs in", async () => {
  await page.getByRole("heading", { name: people.sign_in.title }).waitFor();
  expect(await page.evaluate(() => document.activeElement?.getAttribute("autocomplete"))).toBe("username");
  await page.keyboard.type(admin.name);
  await page.keyboard.press("Tab");
  await page.keyboard.type(admin.password);
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "little bell" }).waitFor();
});

it("skips the menu", async () => {
  await page.reload();
  await page.getByRole("link", { name: "little bell" }).waitFor();
  await page.keyboard.press("Tab");
  expect(await here()).toMatchObject({ name: common.skip_to_content, isShown: true });
  await window.picture("keyboard-skip");
  await page.keyboard.press("Enter");
  expect((await here()).id).toBe("content");
  await page.keyboard.press("Tab");
  expect(await page.evaluate(() => document.activeElement?.closest("#content") !== null)).toBe(true);
});

it("goes through the menu to another page, and back", async () => {
  await tabTo(common.pages.executors, "Shift+Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: common.pages.executors, exact: true }).waitFor();
  expect((await here()).tag).not.toBe("body");
  await tabTo(common.pages.tasks, "Shift+Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: common.pages.tasks, exact: true }).waitFor();
  expect((await here()).tag).not.toBe("body");
});

it("opens a dialog out of a task's menu, and comes back to the menu's button", async () => {
  const actions = say(tasks.actions_of, { name: "little bell" });
  await page.getByRole("button", { name: actions }).waitFor();
  await tabTo(actions);
  await page.keyboard.press("Enter");
  await page.getByRole("menuitem", { name: tasks.stop.button, exact: true }).waitFor();
  await chooseInMenu(tasks.stop.button);
  const question = dialog(page, say(tasks.stop.question, { name: "little bell" }));
  await question.waitFor();
  await page.waitForFunction(() => document.activeElement?.closest("[role=dialog]") != null);
  await page.keyboard.press("Escape");
  await question.waitFor({ state: "hidden" });
  await page.waitForFunction((name) => document.activeElement?.getAttribute("aria-label") === name, actions);
});

it("opens the task, runs it, and is back where it was", async () => {
  await tabTo("little bell", "Shift+Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "little bell" }).waitFor();
  await window.settled();
  // The link that was followed is gone: one is not thrown back to the page's beginning.
  expect((await here()).tag).not.toBe("body");
  await tabTo(tasks.run.button);
  await page.keyboard.press("Enter");
  const run = dialog(page, say(tasks.run.title, { name: "little bell" }));
  await run.waitFor();
  await page.waitForFunction(() => document.activeElement?.closest("[role=dialog]") != null);
  await tabTo(tasks.run.button);
  expect(await here()).toMatchObject({ inDialog: true });
  await window.picture("keyboard-run");
  await page.keyboard.press("Enter");
  await run.getByRole("link", { name: like(tasks.run.log) }).waitFor();
  expect((await here()).tag).not.toBe("body");
  expect(await world.log(bell, "succeeded")).toMatchObject({ trigger: "manual", output: "ding" });
  await tabTo(common.close);
  await page.keyboard.press("Enter");
  await run.waitFor({ state: "hidden" });
  await page.waitForFunction((text) => document.activeElement?.textContent.trim() === text, tasks.run.button);
  expect(window.faults).toEqual([]);
});

it("follows the links in menus", async () => {
  await tabTo(say(`${common.own_account}: {{name}}`, { name: "Administrator" }), "Shift+Tab");
  await page.keyboard.press("Enter");
  await chooseInMenu(common.own_account);
  await page.getByRole("heading", { level: 1, name: common.pages.account, exact: true }).waitFor();
  expect((await here()).tag).not.toBe("body");
  expect(window.faults).toEqual([]);
});
