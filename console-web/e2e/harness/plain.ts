/** An executor of xxl-job as far as it keeps to the protocol: it registers, takes runs, and calls back. */
import { createServer, type IncomingMessage, type Server } from "node:http";

/** A run as it came. */
export interface Came {
  jobId: number;
  logId: number;
  executorHandler: string;
}

/** What a node answers. */
interface Said {
  code: number;
  msg?: string | null;
}

interface Access {
  /** Where the node is. */
  url: string;
  /** The app's name, and a token of it. */
  app: string;
  token: string;
  /** What it calls with. */
  agent?: string;
}

/** How often clients register, ms; after three times that they are gone. */
const REGISTER_MS = 30_000;

export class PlainExecutor {
  private again: NodeJS.Timeout | undefined;
  /** Runs in the order in which they came. */
  readonly runs: Came[] = [];
  /** What each run has logged. */
  lines: string[] = ["begins", "ends"];

  private constructor(
    private readonly access: Access,
    private readonly server: Server,
    /** As it registers. */
    readonly address: string,
  ) {}

  /** Listens; it is not registered yet. */
  static async start(access: Access): Promise<PlainExecutor> {
    const server = createServer();
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    const place = server.address();
    if (typeof place !== "object" || place === null) throw new Error("no port");
    const executor = new PlainExecutor(access, server, `http://127.0.0.1:${place.port}/`);
    server.on("request", (request, answer) => {
      void textOf(request).then((text) => {
        answer.setHeader("content-type", "text/html;charset=utf-8");
        const asks = request.url === "/log" ? (JSON.parse(text) as { fromLineNum: number }) : undefined;
        answer.end(JSON.stringify({ code: 200, msg: null, content: asks === undefined ? null : pageOf(executor.lines, asks.fromLineNum) }));
        if (request.url === "/run") executor.ran(JSON.parse(text) as Came);
      });
    });
    return executor;
  }

  private ran(run: Came): void {
    this.runs.push(run);
    void this.tell("callback", [{ logId: run.logId, logDateTim: Date.now(), handleCode: 200, handleMsg: "" }]);
  }

  /** Registers, and from then on as clients do; what the node says to it. */
  async register(): Promise<Said> {
    const said = await this.announce();
    this.again ??= setInterval(() => void this.announce().catch(() => undefined), REGISTER_MS);
    return said;
  }

  private async announce(): Promise<Said> {
    return this.tell("registry", { registryGroup: "EXECUTOR", registryKey: this.access.app, registryValue: this.address });
  }

  private async tell(path: string, body: unknown): Promise<Said> {
    const { url, token, agent = "Java/17.0.13" } = this.access;
    const headers = { "content-type": "application/json", "xxl-job-access-token": token, "user-agent": agent };
    const answer = await fetch(`${url}/xxl-job-admin/api/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    return (await answer.json()) as Said;
  }

  /** Ends it without a word. */
  async end(): Promise<void> {
    clearInterval(this.again);
    this.server.closeAllConnections();
    await new Promise((resolve) => void this.server.close(resolve));
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

/** The lines from one on, counted from 1. */
function pageOf(lines: readonly string[], from: number) {
  const logContent = lines.slice(Math.max(0, from - 1)).map((line) => `${line}\n`).join("");
  return { fromLineNum: from, toLineNum: lines.length, logContent, isEnd: false };
}
