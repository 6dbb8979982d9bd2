/** What each page offers to do, and the permission without which the button is not there. */
import type { Permission } from "../src/api/permissions";
import en from "../src/i18n/en";

/** How much a permission must width for a button: any app of the tenant, the one that the page is about, all of the tenant, or the platform. */
export type Width = "any" | "app" | "tenant" | "platform";

export interface Offer {
  text: string;
  needs: Permission;
  width: Width;
  /** Absent: a button. */
  role?: "button" | "link" | "menuitem" | "tab" | "heading";
}

export interface Offering {
  address: string;
  /** The page's heading, by which one knows that it is there. */
  title: string;
  /** What opens it. */
  needs: Permission;
  /** A button that opens the menu in which some of the offers are. */
  menu?: string;
  offers: Offer[];
}

/** Ids of what the pages are about. */
export interface About {
  task: string;
  stopped: string;
  log: string;
  waiting: string;
  app: string;
  executor: string;
  user: string;
}

function offer(text: string, needs: Permission, width: Width, role?: Offer["role"]): Offer {
  return { text, needs, width, ...(role === undefined ? {} : { role }) };
}

function ofRuns({ task, stopped, log, waiting }: About): Offering[] {
  const { tasks, logs, common } = en;
  return [
    {
      address: "/tasks?tenant=demo",
      title: common.pages.tasks,
      needs: "tasks.read",
      offers: [offer(tasks.list.create, "tasks.create", "any"), offer(tasks.import.button, "tasks.apply", "any"), offer(tasks.export.button, "tasks.read", "any")],
    },
    {
      address: `/tasks/${task}?tenant=demo`,
      title: "nightly",
      needs: "tasks.read",
      menu: tasks.actions_of.replace("{{name}}", "nightly"),
      offers: [
        offer(tasks.run.button, "tasks.run", "app"),
        offer(tasks.stop.button, "tasks.stop", "app"),
        offer(tasks.pause.button, "tasks.pause", "app"),
        offer(common.edit, "tasks.edit", "app"),
        offer(en.task.fires.cancel, "task_logs.cancel", "app"),
        offer(en.task.parts.history, "audit.read", "tenant", "tab"),
        offer(en.task.parts.backfills, "backfills.read", "app", "tab"),
        offer(tasks.copy_task, "tasks.create", "app", "menuitem"),
        offer(tasks.backfill.button, "backfills.create", "app", "menuitem"),
        offer(common.delete, "tasks.delete", "app", "menuitem"),
      ],
    },
    { address: `/tasks/${stopped}?tenant=demo`, title: "stopped", needs: "tasks.read", offers: [offer(tasks.start.button, "tasks.start", "app")] },
    {
      address: `/logs/${log}?tenant=demo`,
      title: logs.title.replace("{{id}}", log),
      needs: "task_logs.read",
      offers: [offer(logs.again, "tasks.run", "app"), offer(logs.output.title, "task_logs.output", "app", "heading")],
    },
    { address: `/logs/${waiting}?tenant=demo`, title: logs.title.replace("{{id}}", waiting), needs: "task_logs.read", offers: [offer(logs.cancel_run, "task_logs.cancel", "app")] },
  ];
}

function ofTenant(): Offering[] {
  const { calendars, common } = en;
  return [
    { address: "/calendars?tenant=demo", title: common.pages.calendars, needs: "calendars.read", offers: [offer(calendars.calendars.create, "calendars.edit", "tenant", "link")] },
    {
      address: "/calendars?tenant=demo&calendar=holidays",
      title: "holidays",
      needs: "calendars.read",
      offers: [offer(common.save, "calendars.edit", "tenant"), offer(calendars.editor.delete, "calendars.delete", "tenant")],
    },
    {
      address: "/maintenance?tenant=demo",
      title: common.pages.maintenance,
      needs: "maintenance.read",
      offers: [offer(calendars.maintenance.begin, "maintenance.create", "tenant"), offer(calendars.maintenance.drop, "maintenance.delete", "tenant")],
    },
    { address: "/quotas?tenant=demo", title: `${common.pages.quotas} · demo`, needs: "quotas.read", offers: [offer(en.admin.quotas.edit, "quotas.edit", "platform")] },
    {
      address: "/tenants",
      title: common.pages.tenants,
      needs: "tenants.read",
      offers: [offer(en.admin.tenants.create, "tenants.create", "platform"), offer(common.edit, "tenants.edit", "platform"), offer(common.delete, "tenants.delete", "platform")],
    },
  ];
}

function ofEngine({ app, executor }: About): Offering[] {
  const { apps, keys, executors } = en.executors;
  return [
    { address: "/apps?tenant=demo", title: en.common.pages.apps, needs: "apps.read", offers: [offer(apps.create, "apps.create", "tenant")] },
    {
      address: `/apps/${app}?tenant=demo`,
      title: "bells",
      needs: "apps.read",
      offers: [
        offer(apps.delete, "apps.delete", "app"),
        offer(en.common.edit, "apps.edit", "app"),
        offer(keys.title, "keys.read", "app", "heading"),
        offer(keys.create, "keys.create", "app"),
        offer(keys.rotate, "keys.rotate", "app"),
        offer(keys.revoke, "keys.revoke", "app"),
        offer(en.xxljob.door.title, "keys.read", "app", "heading"),
        offer(en.xxljob.door.open_it, "keys.create", "app"),
      ],
    },
    {
      address: "/imports?tenant=demo",
      title: `${en.common.pages.imports} · demo`,
      needs: "tasks.read",
      // What it shows needs the permission in the whole tenant; to read one task, its app is enough.
      offers: [],
    },
    {
      address: `/executors?tenant=demo&executor=${executor}`,
      title: en.common.pages.executors,
      needs: "executors.read",
      offers: [offer(executors.show_app, "apps.read", "app", "link"), offer(executors.disable, "executors.edit", "app")],
    },
  ];
}

function ofPeople({ user }: About): Offering[] {
  const { users, roles, tokens } = en.people;
  return [
    { address: "/users?tenant=demo", title: en.common.pages.users, needs: "users.read", offers: [offer(users.create, "users.create", "tenant")] },
    {
      address: `/users/${user}?tenant=demo`,
      title: "vera",
      needs: "users.read",
      offers: [
        offer(en.common.edit, "users.edit", "tenant"),
        offer(users.disable, "users.edit", "tenant"),
        offer(users.reset, "users.edit", "tenant"),
        offer(users.end_sessions, "users.edit", "tenant"),
        offer(en.common.delete, "users.delete", "tenant"),
        offer(users.grant, "grants.create", "any"),
        offer(users.take, "grants.delete", "tenant"),
      ],
    },
    { address: "/roles?tenant=demo", title: en.common.pages.roles, needs: "roles.read", offers: [offer(roles.create, "roles.create", "tenant")] },
    { address: "/tokens?tenant=demo", title: en.common.pages.tokens, needs: "tokens.read", offers: [offer(tokens.revoke, "tokens.revoke", "tenant")] },
  ];
}

export function offerings(about: About): Offering[] {
  return [...ofRuns(about), ...ofTenant(), ...ofEngine(about), ...ofPeople(about)];
}
