/** A node, its database, tenants, people and executors: what the console of a test is about. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import createFetchClient, { type Client } from "openapi-fetch";
import type { components, paths } from "../../src/api/schema";
import type { QueryOf } from "../../src/api/client";

type RunStatus = QueryOf<"list_task_logs">["status"];
import { PlainExecutor } from "./plain";
import { freePort, Running, until } from "./process";

const TARGET = resolve(import.meta.dirname, "../../../target/debug");
const CARILLON = process.env.CARILLON_BIN ?? join(TARGET, "carillon");
const DEMO = process.env.CARILLON_DEMO ?? join(TARGET, "examples/demo");

/** What the API gives, or the test ends: set-up must not fail unseen. */
export function got<Data>(answer: { data?: Data; error?: unknown; response: Response }): Data {
  if (answer.data === undefined) throw new Error(`${answer.response.url}: ${answer.response.status} ${JSON.stringify(answer.error)}`);
  return answer.data;
}

/** Who signs in. */
export interface Person {
  name: string;
  password: string;
}

/** What an executor signs with. */
export interface AppKey {
  tenant: string;
  app: string;
  appId: string;
  keyId: string;
  secret: string;
}

/** A scheduler process over SQLite in a folder of its own. */
export class World {
  /** The password that an operator gave `admin` before the first start; it must be changed at the first login. */
  static readonly FIRST_PASSWORD = "Given-By-Operator-1";
  readonly folder = mkdtempSync(join(tmpdir(), "carillon-e2e-"));
  readonly api: Client<paths>;
  /** An API token of the node's settings. */
  readonly token = `e2e-${crypto.randomUUID()}${crypto.randomUUID()}`;
  private node: Running | undefined;
  private readonly executors: Running[] = [];
  private readonly plain: PlainExecutor[] = [];

  private constructor(readonly port: number) {
    this.api = createFetchClient<paths>({ baseUrl: `${this.url}/api/v1`, headers: { authorization: `Bearer ${this.token}` } });
  }

  /** Where the console is. */
  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  static async start(): Promise<World> {
    const world = new World(await freePort());
    await world.startNode();
    return world;
  }

  /** Starts the node, at the same port and over the same database as before. */
  async startNode(): Promise<void> {
    const environment = {
      CARILLON__SERVER__PORT: String(this.port),
      CARILLON__API__TOKEN: this.token,
      CARILLON__AUTH__ADMIN_PASSWORD: World.FIRST_PASSWORD,
      CARILLON__DATABASE__URL: `sqlite://${join(this.folder, "carillon.db")}?mode=rwc`,
    };
    const node = new Running(CARILLON, ["serve"], environment, join(this.folder, "node.log"), this.folder);
    this.node = node;
    await until("the node to be ready", async () => {
      if (node.hasEnded()) throw new Error(`the node ended: ${node.printed()}`);
      return fetch(`${this.url}/readyz`).then(
        (answer) => answer.ok,
        () => false,
      );
    });
  }

  /** Takes the node away. */
  async endNode(signal: "SIGTERM" | "SIGKILL" = "SIGKILL"): Promise<void> {
    await this.node?.end(signal);
  }

  /** What the node has logged. */
  nodeLog(): string {
    return this.node?.printed() ?? "";
  }

  /** Makes a tenant, and an app in it. */
  async app(tenant: string, app: string): Promise<AppKey> {
    const known = await this.api.GET("/tenants/{tenant}", { params: { path: { tenant } } });
    if (known.data === undefined) got(await this.api.POST("/tenants", { body: { name: tenant } }));
    const made = got(await this.api.POST("/apps", { body: { tenant, name: app } }));
    return { tenant, app, appId: made.id, keyId: made.key.id, secret: made.key.secret };
  }

  /** Starts the demo executor of that app, and waits until the node has it online. */
  async executor(key: AppKey, environment: Record<string, string> = {}): Promise<Running> {
    const number = this.executors.length + 1;
    const before = await this.online(key);
    const executor = new Running(
      DEMO,
      [],
      {
        CARILLON_SCHEDULERS: this.url,
        CARILLON_TENANT: key.tenant,
        CARILLON_APP: key.app,
        CARILLON_KEY_ID: key.keyId,
        CARILLON_KEY_SECRET: key.secret,
        CARILLON_JOURNAL_DIR: join(this.folder, `journal-${number}`),
        CARILLON_BIND: "127.0.0.1",
        CARILLON_PORT: "0",
        ...environment,
      },
      join(this.folder, `executor-${number}.log`),
      this.folder,
    );
    this.executors.push(executor);
    await until("the executor to be online", async () => {
      if (executor.hasEnded()) throw new Error(`the executor ended: ${executor.printed()}`);
      return (await this.online(key)) > before;
    });
    return executor;
  }

  /** Opens the app's door with a new token. */
  async openDoor({ appId }: Pick<AppKey, "appId">, note = ""): Promise<string> {
    return got(await this.api.POST("/apps/{id}/keys", { params: { path: { id: appId } }, body: { kind: "token", note } })).secret;
  }

  /** Starts an executor of xxl-job with that token, and waits until the node has it online. */
  async plainExecutor({ tenant, app }: Pick<AppKey, "tenant" | "app">, token: string, agent?: string): Promise<PlainExecutor> {
    const executor = await PlainExecutor.start({ url: this.url, app, token, agent });
    this.plain.push(executor);
    const said = await executor.register();
    if (said.code !== 200) throw new Error(`the executor was refused: ${said.msg ?? ""}`);
    await until("the executor to be online", async () => {
      const { items } = got(await this.api.GET("/executors", { params: { query: { tenant, app } } }));
      return items.some(({ address }) => executor.address.startsWith(address));
    });
    return executor;
  }

  private async online(key: AppKey): Promise<number> {
    const query = { tenant: key.tenant, app: key.app };
    return got(await this.api.GET("/executors", { params: { query } })).items.length;
  }

  /** Makes tasks of an app out of a task file's entries. */
  async tasks(key: AppKey, tasks: Record<string, unknown>[]): Promise<Map<string, string>> {
    const task = tasks.map((each) => ({ tenant: key.tenant, app: key.app, ...each }));
    const applied = got(await this.api.POST("/tasks/apply", { body: { version: 1, task } }));
    return new Map(applied.tasks.map((each) => [each.name, each.id ?? ""]));
  }

  /** A log of a task in that state; waits until there is one. */
  async log(task: string, status: RunStatus): Promise<components["schemas"]["TaskLog"]> {
    return until(`a log of task ${task} that is ${status}`, async () => {
      const page = got(await this.api.GET("/task-logs", { params: { query: { task, status, limit: 1 } } }));
      return page.items[0];
    });
  }

  /** Waits until the fire of a task at that instant has that state. */
  async logAt(task: string, at: number, status: RunStatus): Promise<components["schemas"]["TaskLog"]> {
    return until(`the fire at ${at} of task ${task} to be ${status}`, async () => {
      const page = got(await this.api.GET("/task-logs", { params: { query: { task, from: at, until: at + 1, status, limit: 1 } } }));
      return page.items[0];
    });
  }

  /** Creates a user with a role in a tenant (`null`: on the platform), who has chosen their password. */
  async person(name: string, role: string, tenant: string | null, apps: string[] = []): Promise<Person> {
    return World.personOf(this.url, this.api, name, role, tenant, apps);
  }

  /** The same at any node. */
  static async personOf(url: string, api: Client<paths>, name: string, role: string, tenant: string | null, apps: string[] = []): Promise<Person> {
    const given = "Given-For-Once-1";
    const user = got(await api.POST("/users", { body: { name, password: given, tenant } }));
    const roles = got(await api.GET("/roles", { params: { query: { limit: 500 } } })).items;
    const id = roles.find((each) => each.name === role)?.id;
    if (id === undefined) throw new Error(`there is no role ${role}`);
    got(await api.POST("/users/{id}/grants", { params: { path: { id: user.id } }, body: { role: id, tenant, apps } }));
    return choosePassword(url, { name, password: given }, `Chosen-By-Himself-${name.length}`);
  }

  /** `admin`, who has chosen a password. */
  async admin(): Promise<Person> {
    return choosePassword(this.url, { name: "admin", password: World.FIRST_PASSWORD }, "Nine-Bells-Ring-1");
  }

  /** Ends everything, and removes its folder. */
  async end(): Promise<void> {
    await Promise.all([...this.executors.map((executor) => executor.end("SIGKILL")), ...this.plain.map((executor) => executor.end())]);
    await this.endNode();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

async function choosePassword(url: string, person: Person, password: string): Promise<Person> {
  const plain = createFetchClient<paths>({ baseUrl: `${url}/api/v1` });
  const session = got(await plain.POST("/login", { body: person }));
  const answer = await plain.PUT("/account/password", {
    body: { current: person.password, new: password },
    headers: { authorization: `Bearer ${session.token}` },
  });
  if (!answer.response.ok) throw new Error(`the password was refused: ${JSON.stringify(answer.error)}`);
  return { name: person.name, password };
}
