/** Tenants, users, roles, tokens, quotas, the audit of all that, and one's own account. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import en from "../src/i18n/en";
import { openWindow, startBrowser, windowOf, type Watched } from "./harness/browser";
import { until } from "./harness/process";
import { choose, confirm, dialog, keepSecret, say, wrong } from "./harness/words";
import { got, World, type AppKey, type Person } from "./harness/world";

let world: World;
let browser: Browser;
let admin: Person;
let tess: Person;
let key: AppKey;
let window: Watched;

const { people, common, admin: ofAdmin, audit } = en;

beforeAll(async () => {
  [world, browser] = await Promise.all([World.start(), startBrowser()]);
  admin = await world.admin();
  key = await world.app("demo", "bells");
  await world.tasks(key, [{ name: "nightly", handler: "echo", schedule: "none", started: true }]);
  await world.app("retail", "tills");
  tess = await world.person("tess", "tenant admin", "demo");
  window = await windowOf(browser, world, admin);
});

afterAll(async () => {
  await browser.close();
  await world.end();
});

async function user(name: string) {
  const found = got(await world.api.GET("/users")).items.find((each) => each.name === name);
  if (found === undefined) throw new Error(`there is no user ${name}`);
  return found;
}

/** What the API answers to the bearer of a token. */
async function asBearer(secret: string, path: string, method = "GET"): Promise<Response> {
  return fetch(`${world.url}/api/v1${path}`, { method, headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" } });
}

/** Signs in with a password that was given, and chooses another. */
async function enter(name: string, given: string, chosen: string): Promise<Watched> {
  const other = await openWindow(browser, world);
  await other.open("/");
  await other.signIn({ name, password: given });
  const { page } = other;
  const { current, next, again, different, submit } = people.new_password;
  await page.getByLabel(current, { exact: true }).fill(given);
  await page.getByLabel(next, { exact: true }).fill(chosen);
  await page.getByLabel(again, { exact: true }).fill(`${chosen}x`);
  await page.getByRole("button", { name: submit }).click();
  await page.getByText(different).waitFor();
  await page.getByLabel(again, { exact: true }).fill(chosen);
  await page.getByRole("button", { name: submit }).click();
  await page.locator("#content").waitFor();
  return other;
}

it("renews heartbeats and leases though nothing changes", async () => {
  const page = await window.open("/nodes");
  const times = page.getByRole("row").nth(1).locator("time");
  await times.first().waitFor();
  const beat = async () => (await times.evaluateAll((all) => all.map((each) => each.getAttribute("datetime")))).join(" ");
  const first = await beat();
  await until("a later heartbeat", async () => (await beat()) !== first);
  const second = await beat();
  await until("one later still", async () => (await beat()) !== second);
});

it("makes, describes and deletes a tenant", async () => {
  const page = await window.open("/tenants");
  await page.getByRole("button", { name: ofAdmin.tenants.create }).click();
  const form = dialog(page, ofAdmin.tenants.create_title);
  await form.getByLabel(common.name).fill("no spaces please");
  await form.getByRole("button", { name: common.create }).click();
  await form.getByText(ofAdmin.tenants.name_rule).waitFor();
  await form.getByLabel(common.name).fill("demo");
  await form.getByRole("button", { name: common.create }).click();
  await form.getByRole("alert").filter({ hasText: people.refused.name_taken }).or(form.getByText(/taken|exists/)).first().waitFor();
  await form.getByLabel(common.name).fill("spare");
  await window.picture("people-tenant");
  await form.getByRole("button", { name: common.create }).click();
  const row = page.getByRole("row").filter({ hasText: "spare" });
  await row.getByRole("button", { name: common.edit }).click();
  const described = dialog(page, say(ofAdmin.tenants.edit_title, { name: "spare" }));
  await described.getByLabel(common.description).fill("for trials");
  await described.getByRole("button", { name: common.save }).click();
  await row.getByText("for trials").waitFor();
  expect(got(await world.api.GET("/tenants/{tenant}", { params: { path: { tenant: "spare" } } })).description).toBe("for trials");

  await row.getByRole("button", { name: common.delete }).click();
  const asked = dialog(page, say(ofAdmin.tenants.delete_question, { name: "spare" }));
  const remove = asked.getByRole("button", { name: common.delete });
  expect(await remove.isDisabled()).toBe(true);
  await asked.getByRole("textbox").fill("spare");
  expect(await window.axe()).toEqual([]);
  await remove.click();
  await row.waitFor({ state: "hidden" });
  expect((await world.api.GET("/tenants/{tenant}", { params: { path: { tenant: "spare" } } })).response.status).toBe(404);
  expect(window.faults).toEqual([]);
});

it("makes a user, shows the password once, and grants a role in one app", async () => {
  const page = await window.open("/users?tenant=demo");
  await page.getByRole("button", { name: people.users.create }).click();
  const form = dialog(page, people.users.create_title);
  await form.getByLabel(people.users.name, { exact: true }).fill("nora");
  await window.picture("people-user");
  await form.getByRole("button", { name: common.create }).click();
  const title = say(people.users.password_title, { name: "nora" });
  await dialog(page, title).waitFor();
  expect(await dialog(page, title).getByRole("button", { name: people.secret.close }).isDisabled()).toBe(true);
  expect(await window.axe()).toEqual([]);
  await window.picture("people-secret");
  const given = await keepSecret(page, title);

  await page.getByText(people.users.next_grant).waitFor();
  await page.getByRole("button", { name: people.users.grant, exact: true }).click();
  const grant = dialog(page, say(people.users.grant_title, { name: "nora" }));
  await choose(page, grant.getByLabel(people.users.grant_apps), "bells");
  await choose(page, grant.getByLabel(people.users.grant_role, { exact: true }), "operator");
  await window.picture("people-grant");
  await grant.getByRole("button", { name: people.users.grant_submit, exact: true }).click();
  await page.getByRole("row").filter({ hasText: "operator" }).filter({ hasText: "bells" }).waitFor();
  const made = await user("nora");
  expect(made.grants.map(({ role, apps }) => [role, apps])).toEqual([["operator", [key.appId]]]);
  // It was shown this once.
  await page.reload();
  await window.settled();
  expect(await page.locator("body").innerText()).not.toContain(given);

  const hers = await enter("nora", given, "Chosen-By-Herself-1");
  await page.getByRole("button", { name: people.users.disable }).waitFor();
  await confirm(page, page.getByRole("button", { name: people.users.disable }), say(people.users.disable_question, { name: "nora" }), people.users.disable);
  await hers.page.locator("button[type=submit]").filter({ hasText: people.sign_in.submit }).waitFor();
  expect((await user("nora")).disabled).toBe(true);
  await confirm(page, page.getByRole("button", { name: people.users.enable }), say(people.users.enable_question, { name: "nora" }), people.users.enable);
  await confirm(page, page.getByRole("button", { name: people.users.reset }), say(people.users.reset_question, { name: "nora" }), people.users.reset);
  const second = await keepSecret(page, title);
  await hers.signIn({ name: "nora", password: "Chosen-By-Herself-1" });
  await hers.page.getByText(people.sign_in.wrong).waitFor();
  await hers.context.close();
  const again = await enter("nora", second, "Chosen-By-Herself-2");
  await again.context.close();
  expect(window.faults).toEqual([]);
});

it("finds users by any part of a name, at the node", async () => {
  const page = await window.open("/users");
  const link = (name: string) => page.getByRole("link", { name, exact: true });
  await link("admin").waitFor();
  const asked = page.waitForResponse((answer) => new URL(answer.url()).searchParams.get("search") === "NOR");
  await page.getByRole("searchbox", { name: people.users.search }).fill("NOR");
  expect(((await (await asked).json()) as { items: { name: string }[] }).items.map(({ name }) => name)).toEqual(["nora"]);
  await link("admin").waitFor({ state: "hidden" });
  await link("nora").waitFor();
  expect(window.faults).toEqual([]);
});

it("begins a grant with the user's own tenant, and asks for their name where it would hold everywhere", async () => {
  const nora = await user("nora");
  await window.open(`/users/${nora.id}`);
  const { page } = window;
  const open = async (name: string) => {
    await page.getByRole("button", { name: people.users.grant, exact: true }).click();
    return dialog(page, say(people.users.grant_title, { name }));
  };
  const hers = await open("nora");
  await hers.getByText(`${common.tenant} demo`, { exact: true }).waitFor();
  await hers.getByRole("button", { name: common.cancel, exact: true }).click();
  await hers.waitFor({ state: "hidden" });

  const pia = got(await world.api.POST("/users", { body: { name: "pia.p", password: "Given-For-Once-1", tenant: null } }));
  await window.open(`/users/${pia.id}`);
  const grant = await open("pia.p");
  const submit = grant.getByRole("button", { name: people.users.grant_submit, exact: true });
  // Nothing is chosen for one.
  expect(await grant.getByLabel(people.users.grant_role, { exact: true }).count()).toBe(0);
  await submit.click();
  await wrong(page.getByLabel(people.users.grant_where, { exact: true })).waitFor();
  await choose(page, grant.getByLabel(people.users.grant_where), common.the_platform);
  await choose(page, grant.getByLabel(people.users.grant_role, { exact: true }), "viewer");
  const typed = page.getByLabel(say(common.type_to_confirm, { name: "pia.p" }));
  await grant.getByText(say(people.users.grant_everywhere, { name: "pia.p" })).waitFor();
  for (const text of ["", "piaxp"]) {
    await typed.fill(text);
    await submit.click();
    await wrong(typed).waitFor();
  }
  expect((await user("pia.p")).grants).toEqual([]);
  expect(await window.axe()).toEqual([]);
  await window.picture("people-grant-platform");
  await typed.fill("pia.p");
  await submit.click();
  await grant.waitFor({ state: "hidden" });
  expect((await user("pia.p")).grants.map(({ role, tenant_id }) => [role, tenant_id ?? null])).toEqual([["viewer", null]]);
  expect(window.faults).toEqual([]);
});

it("makes a role and edits it; what one does not hold is not to be chosen", async () => {
  const page = await window.open("/roles");
  await page.getByRole("button", { name: people.roles.create }).click();
  const form = dialog(page, people.roles.create_title);
  await form.getByLabel(common.name).fill("helper");
  await form.getByRole("button", { name: common.create }).click();
  await form.getByText(people.roles.some_needed).waitFor();
  const wanted = ["users", "roles"];
  for (const resource of wanted) await form.getByRole("button", { name: say(people.picker.all_of, { resource }) }).click();
  await form.getByRole("button", { name: common.create }).click();
  await form.waitFor({ state: "hidden" });
  const role = async () => got(await world.api.GET("/roles", { params: { query: { limit: 500 } } })).items.find(({ name }) => name === "helper");
  expect(new Set((await role())?.permissions.map((each) => each.split(".")[0]))).toEqual(new Set(wanted));

  await page.getByRole("link", { name: "helper", exact: true }).click();
  const drawer = page.locator(".ant-drawer");
  await drawer.getByRole("button", { name: common.edit }).click();
  const edit = dialog(page, say(people.roles.edit_title, { name: "helper" }));
  await edit.getByRole("checkbox", { name: /^delete Delete users/ }).uncheck();
  await edit.getByRole("button", { name: common.save }).click();
  await edit.waitFor({ state: "hidden" });
  expect((await role())?.permissions).not.toContain("users.delete");
  await page.keyboard.press("Escape");

  await page.getByText(people.roles.matrix, { exact: true }).click();
  const row = page.getByRole("row").filter({ hasText: "users.create" });
  await row.getByRole("img", { name: people.roles.allowed, exact: true }).first().waitFor();
  // One's own, platform admin, tenant admin, helper; not operator and viewer.
  expect(await row.getByRole("img", { name: people.roles.allowed, exact: true }).count()).toBe(4);
  expect(await row.getByRole("img", { name: people.roles.not_allowed, exact: true }).count()).toBe(2);

  const hank = await windowOf(browser, world, await world.person("hank", "helper", "demo"));
  await hank.open("/roles");
  await hank.page.getByRole("button", { name: people.roles.create }).click();
  const ofHank = dialog(hank.page, people.roles.create_title);
  const lacking = ofHank.getByRole("checkbox", { name: new RegExp(`^run .*${people.picker.not_held}`) });
  await lacking.waitFor();
  expect(await lacking.isDisabled()).toBe(true);
  const useless = ofHank.getByRole("checkbox", { name: new RegExp(people.picker.platform_only) });
  expect(await useless.first().isDisabled()).toBe(true);
  expect(await hank.axe()).toEqual([]);
  await hank.picture("people-role-lacking");
  expect([...window.faults, ...hank.faults]).toEqual([]);
  await hank.context.close();
});

it("makes a token that does what it may, where it may, until it is revoked", async () => {
  const page = await window.open("/account?tab=tokens");
  await page.getByRole("button", { name: people.tokens.create }).click();
  const form = dialog(page, people.tokens.create_title);
  await form.getByLabel(people.tokens.name).fill("nightly export");
  await choose(page, form.getByLabel(people.tokens.tenant), `${common.tenant} demo`);
  await choose(page, form.getByLabel(people.tokens.expiry), say(people.tokens.expiry_days, { count: 7 }));
  await form.getByRole("button", { name: common.create }).click();
  await form.getByText(people.tokens.permissions_rule).waitFor();
  await form.getByPlaceholder(people.picker.search).fill("tasks.read");
  await form.getByRole("checkbox", { name: /^read / }).check();
  await window.picture("people-token");
  await form.getByRole("button", { name: common.create }).click();
  const secret = await keepSecret(page, say(people.tokens.secret_title, { name: "nightly export" }));

  const seen = (await (await asBearer(secret, "/tasks")).json()) as { items: { id: string; tenant: string; name: string }[] };
  expect(seen.items.map(({ tenant, name }) => `${tenant} ${name}`)).toEqual(["demo nightly"]);
  expect((await asBearer(secret, `/tasks/${seen.items[0]?.id ?? ""}/stop`, "POST")).status).toBe(403);
  expect((await asBearer(secret, "/users")).status).toBe(403);
  const token = got(await world.api.GET("/tokens")).items.find(({ name }) => name === "nightly export");
  expect(Math.round(((token?.expires_at ?? 0) - Date.now()) / 86_400_000)).toBe(7);

  await window.open("/tokens");
  const row = page.getByRole("row").filter({ hasText: "nightly export" });
  await confirm(page, row.getByRole("button", { name: people.tokens.revoke }), say(people.tokens.revoke_question, { name: "nightly export" }), people.tokens.revoke);
  await row.waitFor({ state: "hidden" });
  expect((await asBearer(secret, "/tasks")).status).toBe(401);
  expect(window.faults).toEqual([]);
});

it("sets quotas, which a tenant admin only sees", async () => {
  const page = await window.open("/quotas?tenant=demo");
  await page.getByRole("button", { name: ofAdmin.quotas.edit }).click();
  const form = dialog(page, say(ofAdmin.quotas.edit_title, { tenant: "demo" }));
  await form.getByLabel(ofAdmin.quotas.max_tasks, { exact: true }).fill("12");
  await window.picture("people-quotas");
  expect(await window.axe()).toEqual([]);
  await form.getByRole("button", { name: common.save }).click();
  await page.getByText(say(ofAdmin.quotas.used_of, { used: 1, bound: 12 })).waitFor();
  expect(got(await world.api.GET("/tenants/{tenant}/quotas", { params: { path: { tenant: "demo" } } })).max_tasks).toBe(12);
  const hers = await windowOf(browser, world, tess);
  await hers.open("/quotas?tenant=demo");
  await hers.page.getByText(ofAdmin.quotas.tenant_help).waitFor();
  await hers.page.getByText(say(ofAdmin.quotas.used_of, { used: 1, bound: 12 })).waitFor();
  expect(await hers.page.getByRole("button", { name: ofAdmin.quotas.edit }).count()).toBe(0);
  expect([...window.faults, ...hers.faults]).toEqual([]);
  await hers.context.close();
});

it("tells who did all this, and what changed", async () => {
  const page = await window.open("/audit?tenant=demo&action=edit_quotas");
  const row = page.getByRole("row").filter({ hasText: audit.actions.edit_quotas });
  await row.filter({ hasText: "admin" }).waitFor();
  expect(await page.getByRole("row").filter({ hasText: audit.actions.create_user }).count()).toBe(0);
  await row.getByRole("button").first().click();
  const change = page.getByRole("row").filter({ hasText: "max_tasks" }).last();
  await change.getByText("12", { exact: true }).waitFor();
  expect(await window.axe()).toEqual([]);
  await window.picture("people-audit");
  await choose(page, page.getByRole("combobox", { name: audit.action, exact: true }), audit.actions.create_user);
  await page.waitForURL(/action=create_user/);
  await page.getByRole("row").filter({ hasText: "nora" }).filter({ hasText: audit.actions.create_user }).waitFor();
  await page.getByText(audit.chains, { exact: true }).click();
  const chains = got(await world.api.GET("/audit/chains")).items;
  const last = chains.find(({ tenant }) => tenant === "demo")?.last_hash ?? "";
  expect(last).toMatch(/^[0-9a-f]{64}$/);
  await page.getByText(last).waitFor();
  expect(window.faults).toEqual([]);
});

it("changes one's own password, and ends one's other sessions", async () => {
  const [one, two] = [await windowOf(browser, world, tess), await windowOf(browser, world, tess)];
  const { page } = one;
  const { end_others, end_others_question } = people.account;
  await one.open("/account?tab=sessions");
  await confirm(page, page.getByRole("button", { name: end_others }), end_others_question, end_others);
  await two.page.locator("input[autocomplete=current-password]").waitFor();
  await page.getByRole("button", { name: end_others }).waitFor({ state: "hidden" });
  await two.signIn(tess);
  await two.page.locator("#content").waitFor();

  await one.open("/account?tab=password");
  const { current, next, again, submit, done } = people.new_password;
  await page.getByLabel(current, { exact: true }).fill("not the one at all");
  await page.getByLabel(next, { exact: true }).fill("Another-One-Here-1");
  await page.getByLabel(again, { exact: true }).fill("Another-One-Here-1");
  await page.getByRole("button", { name: submit }).click();
  await wrong(page.getByLabel(current, { exact: true })).waitFor();
  await one.picture("people-password-wrong");
  await page.getByLabel(current, { exact: true }).fill(tess.password);
  await page.getByRole("button", { name: submit }).click();
  await page.getByText(done).waitFor();
  await two.page.locator("input[autocomplete=current-password]").waitFor();
  await two.signIn({ name: "tess", password: "Another-One-Here-1" });
  await two.page.locator("#content").waitFor();
  expect([...one.faults, ...two.faults]).toEqual([]);
  await Promise.all([one.context.close(), two.context.close()]);
});
