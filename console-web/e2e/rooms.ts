/** What opens on each page: dialogs, drawers, menus, tabs, the kinds of a form. */
import type { Locator, Page } from "playwright-core";
import { until } from "./harness/process";
import { like, say } from "./harness/words";
import type { Texts } from "./harness/reading";

/** Opens what is on a page, one after the other; `look` hears of each while it is open. */
export type Room = (page: Page, look: (name: string) => Promise<void>) => Promise<void>;

/** The button of that name, which an icon may stand before. */
const button = (within: Page | Locator, name: string) => within.getByRole("button", { name: new RegExp(`(^|\\s)${like(name).source}$`) }).first();

/** A dialog or drawer: opened, looked at (and into, by `inside`), closed with Escape. */
async function opened(page: Page, opener: Locator, look: () => Promise<void>, inside?: (shown: Locator) => Promise<void>): Promise<void> {
  const dialogs = page.getByRole("dialog");
  const before = await dialogs.count();
  await opener.click();
  const shown = dialogs.nth(before);
  await shown.waitFor();
  await page.waitForFunction(() => document.querySelector('[role="dialog"] :is([aria-busy="true"], .ant-spin-spinning, .waiting)') === null);
  await look();
  await inside?.(shown);
  // A key that comes while another dialog is just going is that one's.
  await until("the dialog to close", async () => {
    await page.keyboard.press("Escape");
    return (await dialogs.count()) <= before;
  }, 10_000);
}

/** A page whose buttons of these names each open something. */
function buttons(...names: string[]): Room {
  return async (page, look) => {
    for (const name of names) await opened(page, button(page, name), () => look(name));
  };
}

/** One after the other. */
function all(...rooms: Room[]): Room {
  return async (page, look) => {
    for (const room of rooms) await room(page, look);
  };
}

/** Tabs, or the choices of a segmented control. */
function parts(...names: string[]): Room {
  return async (page, look) => {
    for (const name of names) {
      await page.locator("#content").locator(".ant-tabs-tab, .ant-segmented-item").getByText(name, { exact: true }).first().click();
      await page.waitForFunction(() => document.querySelector('#content :is([aria-busy="true"], .ant-spin-spinning, .waiting)') === null);
      await look(name);
    }
  };
}

/** The entries of a menu, each of which opens a dialog. */
function menu(name: string, ...entries: string[]): Room {
  return async (page, look) => {
    for (const entry of entries) {
      await button(page, name).click();
      const item = page.getByRole("menuitem", { name: entry, exact: true });
      await item.waitFor();
      await look(name);
      await opened(page, item, () => look(entry));
    }
  };
}

/** Rooms by the names of `places()`. */
export function rooms(t: Texts): Record<string, Room> {
  const { common, tasks, schedule, executors, people, admin, calendars } = t;
  const { users, roles, tokens, account } = people;
  const head: Room = async (page, look) => {
    for (const name of [common.language, common.theme]) {
      await button(page, name).click();
      await page.getByRole("menuitem", { name: name === common.language ? "English" : common.theme_dark, exact: true }).waitFor();
      await look(name);
      await page.keyboard.press("Escape");
    }
    await page.getByRole("button", { name: common.own_account }).click();
    await page.getByRole("menuitem", { name: common.sign_out }).waitFor();
    await look(common.own_account);
  };
  const kinds: Room = async (page, look) => {
    const choice = page.getByRole("radiogroup", { name: schedule.kind.label });
    for (const kind of Object.keys(schedule.kind) as (keyof typeof schedule.kind)[]) {
      if (kind === "label") continue;
      await choice.getByText(schedule.kind[kind], { exact: true }).click();
      await page.getByText(schedule.kind_help[kind], { exact: true }).first().waitFor();
      await look(kind);
    }
  };
  return {
    overview: head,
    tasks: (page, look) =>
      opened(page, button(page, tasks.import.button), () => look("import"), async (drawer) => {
        await drawer.getByLabel(tasks.import.text).fill("version = 1");
        await drawer.getByText(tasks.import.problem.no_json).waitFor();
        await look("import, wrong");
      }),
    task: all(
      (page, look) =>
        opened(page, button(page, tasks.run.button), () => look("run"), async (asked) => {
          for (const way of [tasks.run.delay, tasks.run.at]) await asked.getByText(way, { exact: true }).click();
          await asked.getByRole("checkbox", { name: tasks.run.other_params }).check();
          await look("run, later");
        }),
      buttons(tasks.stop.button, tasks.pause.button),
      menu(say(tasks.actions_of, { name: "every second" }), tasks.backfill.button, common.delete),
      parts(t.task.parts.definition, t.task.parts.graph, t.task.parts.backfills, t.task.parts.history),
    ),
    "task-new": kinds,
    "log-failed": buttons(t.logs.again),
    maintenance: all(
      (page, look) =>
        opened(page, button(page, calendars.maintenance.begin), () => look("begin"), async (form) => {
          await form.getByText(calendars.maintenance.later, { exact: true }).click();
          await look("plan");
        }),
      buttons(calendars.maintenance.drop),
    ),
    calendar: buttons(calendars.editor.delete),
    "calendar-new": (page, look) =>
      opened(page, button(page, calendars.editor.paste), () => look("paste"), async (form) => {
        await form.getByRole("textbox", { name: calendars.editor.paste_title }).fill("2027-10-01 off\n?");
        await form.getByText(say(calendars.editor.paste_found, { excluded: 1, workdays: 0 })).waitFor();
        await look("pasted");
      }),
    executors: (page, look) =>
      opened(page, page.locator("#content tbody").getByRole("link").first(), () => look("executor"), (drawer) => opened(page, button(drawer, executors.executors.disable), () => look("disable"))),
    apps: buttons(executors.apps.create),
    app: buttons(common.edit, executors.keys.create, executors.keys.rotate, executors.keys.revoke, t.xxljob.door.open_it, executors.apps.delete),
    "app-xxl-job": (page, look) =>
      opened(page, button(page, t.xxljob.door.another), () => look("token"), async (form) => {
        await form.getByText(t.xxljob.token.theirs, { exact: true }).click();
        await look("token, theirs");
      }),
    imports: async (page, look) => {
      await page.getByRole("button", { name: `${t.imports.groups.choose}: bells` }).click();
      await page.getByRole("heading", { name: say(t.imports.commands.title_of, { app: "bells" }) }).waitFor();
      await look("one group");
      await page.getByText("horace", { exact: true }).click();
      await look("horace");
    },
    tenants: buttons(admin.tenants.create, common.edit, common.delete),
    quotas: buttons(admin.quotas.edit),
    users: buttons(users.create),
    user: buttons(users.grant, common.edit, users.disable, users.reset, users.end_sessions, users.take, common.delete),
    roles: all(
      buttons(roles.create),
      (page, look) => opened(page, page.getByRole("link", { name: "operator", exact: true }), () => look("role"), (drawer) => opened(page, button(drawer, roles.copy), () => look("copy"))),
      parts(roles.matrix),
    ),
    tokens: buttons(tokens.revoke),
    audit: async (page, look) => {
      await page.locator("#content .ant-table-row-expand-icon").first().click();
      await page.getByText(t.audit.how, { exact: true }).waitFor();
      await look("entry");
      await parts(t.audit.chains)(page, look);
    },
    account: async (page, look) => {
      await parts(account.access, account.password, account.sessions)(page, look);
      await parts(account.tokens)(page, look);
      await buttons(tokens.create)(page, look);
      await parts(account.preferences)(page, look);
    },
  };
}
