/** Each role sees its pages and its buttons, nothing of others, and the node refuses all the same. */
import type { Browser } from "playwright-core";
import createFetchClient from "openapi-fetch";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PERMISSIONS, type Permission } from "../src/api/permissions";
import type { components, paths } from "../src/api/schema";
import { PAGES } from "../src/app/pages";
import en from "../src/i18n/en";
import { offerings, type Offer, type Offering, type Width } from "./buttons";
import { startBrowser, windowOf, type Watched } from "./harness/browser";
import { say } from "./harness/words";
import { got, World, type Person } from "./harness/world";
import { operations, type Operation, type Things } from "./operations";
import { makeScene } from "./scene";

type Access = components["schemas"]["Me"]["access"];

let world: World;
let browser: Browser;
let things: Things;
/** What is not of the app `bells`: of another app of the tenant, and of another tenant. */
let foreign: { app: Other; tenant: Other };

interface Other {
  task: string;
  log: string;
  app: string;
  /** What must not be shown. */
  name: string;
}

const HAND = { idempotency_key: null, priority: null, at: null };

async function later(task: string): Promise<string> {
  return got(await world.api.POST("/tasks/{id}/run", { params: { path: { id: task } }, body: { ...HAND, delay_ms: 86_400_000 } })).log;
}

/** An app with one task and one run of it. */
async function other(tenant: string, app: string, name: string): Promise<Other> {
  const key = await world.app(tenant, app);
  const tasks = await world.tasks(key, [{ name, handler: "echo", schedule: "none", started: true }]);
  const task = tasks.get(name) ?? "";
  return { task, log: await later(task), app: key.appId, name };
}

async function ownToken(person: Person): Promise<string> {
  const plain = createFetchClient<paths>({ baseUrl: `${world.url}/api/v1` });
  const session = got(await plain.POST("/login", { body: person }));
  const body = { name: "a program of hers", tenant: "demo", permissions: ["tasks.read"], expires_at: Date.now() + 86_400_000 };
  return got(await plain.POST("/account/tokens", { body, headers: { authorization: `Bearer ${session.token}` } })).id;
}

beforeAll(async () => {
  [world, browser] = await Promise.all([World.start(), startBrowser()]);
  const scene = await makeScene(world);
  const vera = await world.person("vera", "viewer", "demo");
  const user = got(await world.api.GET("/users")).items.find(({ name }) => name === "vera");
  const grant = user?.grants[0];
  const window = got(await world.api.GET("/tenants/{tenant}/maintenance", { params: { path: { tenant: "demo" } } })).items[0];
  const executor = got(await world.api.GET("/executors")).items[0];
  const role = got(await world.api.POST("/roles", { body: { name: "made here", description: "", permissions: ["tasks.read"], tenant: "demo" } }));
  const task = scene.tasks.get("nightly") ?? "";
  things = {
    task,
    stopped: scene.tasks.get("stopped") ?? "",
    log: scene.failed,
    waiting: await later(task),
    app: scene.key.appId,
    executor: executor?.id ?? "",
    user: user?.id ?? "",
    window: window?.id ?? "",
    grant: grant?.id ?? "",
    token: await ownToken(vera),
    key: scene.key.keyId,
    role: role.id,
  };
  foreign = { app: await other("demo", "gongs", "strikes the gong"), tenant: await other("retail", "tills", "counts the tills") };
});

afterAll(async () => {
  await browser.close();
  await world.end();
});

/** Whether a user with these grants holds it: in any app of `demo`, in the app `bells`, in all of `demo`, on the platform. */
function holds(access: Access, permission: Permission, width: Width): boolean {
  return access.some((held) => {
    if (!held.permissions.includes(permission)) return false;
    if (held.tenant_id == null) return true;
    if (width === "platform" || held.tenant !== "demo") return false;
    return held.apps.length === 0 || width === "any" || (width === "app" && held.apps.includes(things.app));
  });
}

/** Goes there as a link of the console does, without reloading. */
async function go({ page }: Watched, address: string): Promise<void> {
  await page.evaluate((to) => {
    history.pushState(null, "", to);
    dispatchEvent(new PopStateEvent("popstate"));
  }, address);
}

function shown({ page }: Watched, { text, role = "button" }: Offer) {
  const place = role === "menuitem" ? page.getByRole("menu") : page.locator("#content, .ant-drawer");
  // An icon before the text belongs to the name.
  return place.getByRole(role, { name: new RegExp(`(^| )${text}$`) });
}

/** Which of a page's offers are there. */
async function offered(window: Watched, { address, title, menu, offers }: Offering, access: Access): Promise<string[]> {
  const { page } = window;
  await go(window, address);
  await page.getByRole("heading", { name: title, level: 1, exact: true }).waitFor();
  await window.settled();
  const allowed = (each: Offer) => holds(access, each.needs, each.width);
  for (const each of offers.filter((one) => allowed(one) && one.role !== "menuitem")) await shown(window, each).first().waitFor();
  const opener = page.getByRole("button", { name: menu ?? "", exact: true });
  if (offers.some((each) => each.role === "menuitem" && allowed(each))) {
    await opener.click();
    await page.getByRole("menuitem").filter({ visible: true }).first().waitFor();
  }
  const found: string[] = [];
  for (const each of offers) if ((await shown(window, each).count()) > 0) found.push(each.text);
  if (menu !== undefined) await page.keyboard.press("Escape");
  return found;
}

/** Asks from within the page, with its cookie and its token. */
async function asked({ page }: Watched, { method, path, body }: Operation): Promise<number> {
  return page.evaluate(
    async ([how, where, what]) => {
      const me = (await (await fetch("/api/v1/session")).json()) as { csrf: string };
      const headers = { "content-type": "application/json", "x-csrf-token": me.csrf };
      const answer = await fetch(`/api/v1${where}`, { method: how, headers, ...(what === undefined ? {} : { body: what }) });
      return answer.status;
    },
    [method, path, body === undefined ? undefined : JSON.stringify(body)] as const,
  );
}

async function sessionOf({ page }: Watched): Promise<components["schemas"]["Me"]> {
  return page.evaluate(async () => (await (await fetch("/api/v1/session")).json()) as never);
}

/** Grants a role in the app `gongs` of the tenant. */
async function grantElsewhere(name: string, role: string): Promise<void> {
  const user = got(await world.api.GET("/users", { params: { query: { name } } })).items[0];
  const found = got(await world.api.GET("/roles", { params: { query: { limit: 500 } } })).items.find((each) => each.name === role);
  const body = { role: found?.id ?? "", tenant: "demo", apps: [foreign.app.app] };
  got(await world.api.POST("/users/{id}/grants", { params: { path: { id: user?.id ?? "" } }, body }));
}

/** What a person has changed, as the node's audit has it. */
async function changesBy(name: string): Promise<string[]> {
  const actor = got(await world.api.GET("/users")).items.find((user) => user.name === name)?.id;
  const entries = got(await world.api.GET("/audit", { params: { query: { actor, limit: 500 } } })).items;
  return entries.map(({ action }) => action).filter((action) => !["sign_in", "sign_out", "change_password"].includes(action));
}

/** About the people of the tenant, not about an app: to hold it in any app is enough. */
const OF_PEOPLE: ReadonlySet<Permission> = new Set<Permission>(["roles.read", "tokens.read", "users.read"]);

/** `also`: the user's role in another app of the tenant, not in `bells`. */
const PEOPLE: { name: string; role: string; tenant: string | null; apps?: true; also?: string }[] = [
  { name: "paula", role: "platform admin", tenant: null },
  { name: "tess", role: "tenant admin", tenant: "demo" },
  { name: "otto", role: "operator", tenant: "demo" },
  { name: "vito", role: "viewer", tenant: "demo" },
  { name: "olga", role: "operator", tenant: "demo", apps: true },
  { name: "anna", role: "tenant admin", tenant: "demo", apps: true },
  { name: "mixa", role: "viewer", tenant: "demo", also: "tenant admin" },
];

describe.each(PEOPLE)("$name, $role in $tenant, only one app: $apps, in another also: $also", ({ name, role, tenant, apps, also }) => {
  let window: Watched;
  let access: Access;

  beforeAll(async () => {
    const person = await world.person(name, role, tenant, apps === undefined ? [] : [things.app]);
    if (also !== undefined) await grantElsewhere(name, also);
    window = await windowOf(browser, world, person);
    access = (await sessionOf(window)).access;
  });

  afterAll(() => window.context.close());

  const anywhere = (needs: Permission | undefined) => needs === undefined || access.some((held) => held.permissions.includes(needs));

  it("has the pages in the menu that it may open, and no others", async () => {
    const links = window.page.getByRole("navigation", { name: en.common.menu }).getByRole("link");
    await links.first().waitFor();
    const pages = PAGES.filter((page) => page.menu !== undefined && anywhere(page.needs)).map((page) => en.common.pages[page.name]);
    expect(await links.allInnerTexts()).toEqual(pages);
    await window.picture(`roles-${name}`);
    expect(await window.axe()).toEqual([]);
  });

  it("is told that there is no such page where it may not look", async () => {
    for (const { path, needs } of PAGES.filter((page) => !anywhere(page.needs))) {
      const ids: Record<string, string> = { "/users/:id": things.user, "/tasks/:id/edit": things.task };
      await go(window, path.replace(":id", ids[path] ?? ""));
      await window.page.locator("#content").getByText(en.common.not_found_title).waitFor();
      expect(await window.page.locator("#content h1").count(), `${path} ${needs ?? ""}`).toBe(0);
      await go(window, "/account");
      await window.settled();
    }
  });

  it("finds the buttons that it may use, and no others", async () => {
    for (const offering of offerings(things).filter((each) => anywhere(each.needs))) {
      const allowed = offering.offers.filter((each) => holds(access, each.needs, each.width)).map(({ text }) => text);
      expect(await offered(window, offering, access), offering.address).toEqual(allowed);
    }
  });

  it("sees nothing of what lies elsewhere", async () => {
    const elsewhere = tenant === null ? [] : [foreign.tenant, ...(apps === undefined ? [] : [foreign.app])];
    for (const { task, log, app, name: secret } of elsewhere) {
      for (const address of [`/tasks/${task}`, `/logs/${log}`, `/apps/${app}`]) {
        const page = await window.open(address);
        await page.locator("#content").getByText(en.common.failure.not_found).waitFor();
        expect(await page.locator("body").innerText(), address).not.toContain(secret);
      }
      for (const path of [`/tasks/${task}`, `/task-logs/${log}`, `/apps/${app}`]) expect(await asked(window, { method: "GET", path }), path).toBe(404);
      expect(await asked(window, { method: "POST", path: `/tasks/${task}/stop`, body: {} })).toBeOneOf([403, 404]);
    }
    for (const { name: secret } of elsewhere) {
      const answer = window.page.waitForResponse((response) => new URL(response.url()).searchParams.get("search") === secret);
      await go(window, `/tasks?search=${encodeURIComponent(secret)}`);
      expect(((await (await answer).json()) as { items: unknown[] }).items).toEqual([]);
      await window.page.getByText(en.common.empty_filtered).waitFor();
    }
    await go(window, "/tasks?search=nightly");
    await window.page.getByRole("link", { name: "nightly", exact: true }).waitFor();
  });

  it.skipIf(also === undefined)("may do in the other app what it may not do here", async () => {
    await go(window, `/tasks/${foreign.app.task}?tenant=demo`);
    await window.page.getByRole("heading", { name: foreign.app.name, level: 1, exact: true }).waitFor();
    await window.page.getByRole("button", { name: new RegExp(`${en.tasks.run.button}$`) }).waitFor();
    await go(window, `/logs/${foreign.app.log}?tenant=demo`);
    await window.page.getByRole("button", { name: en.logs.cancel_run, exact: true }).waitFor();
    // In the list, the others' tasks are not to be chosen.
    const box = (of: string) => window.page.getByRole("checkbox", { name: say(en.tasks.list.select, { name: of }) });
    await go(window, "/tasks?tenant=demo&search=nightly");
    await box("nightly").first().waitFor();
    expect(await box("nightly").first().isDisabled()).toBe(true);
    await go(window, `/tasks?tenant=demo&search=${encodeURIComponent(foreign.app.name)}`);
    await box(foreign.app.name).check();
    const bulk = window.page.getByRole("group", { name: en.tasks.bulk.label });
    await bulk.getByRole("button", { name: en.tasks.stop.button, exact: true }).waitFor();
  });

  it("is refused by the node what it may not do", async () => {
    // What any app is enough for is asked of this one.
    const widthOf = ({ width }: Offer): Width => (width === "any" ? "app" : width);
    const width = new Map(offerings(things).flatMap(({ offers }) => offers.map((each) => [each.needs, widthOf(each)])));
    const all = operations(things);
    for (const permission of PERMISSIONS.filter((each) => !holds(access, each, OF_PEOPLE.has(each) ? "any" : (width.get(each) ?? "app")))) {
      const status = await asked(window, all[permission]);
      // A task file is refused as a whole, task by task.
      const refusals = permission === "tasks.apply" ? [400, 403, 404] : [403, 404];
      expect(refusals, `${permission}: ${status}`).toContain(status);
    }
    expect(await changesBy(name)).toEqual([]);
    expect(window.faults).toEqual([]);
  });
});
