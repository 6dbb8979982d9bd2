/** Processes that a test starts, and that end with it. */
import { spawn, type ChildProcess } from "node:child_process";
import { openSync, readFileSync } from "node:fs";
import { createServer } from "node:net";

/** Waits until `look` gives something; what it waits for is a condition, never a time. */
export async function until<Found>(what: string, look: () => Promise<Found | undefined | false>, ms = 60_000): Promise<Found> {
  const end = Date.now() + ms;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > end) throw new Error(`waited ${ms} ms in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** A TCP port that nobody listens on. */
export async function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => (typeof address === "object" && address !== null ? resolve(address.port) : reject(new Error("no port"))));
    });
  });
}

/** A program that runs until it is stopped. */
export class Running {
  private readonly child: ChildProcess;

  /** Starts it; what it prints goes to `log`. Nothing of this process's environment but the path. */
  constructor(
    program: string,
    args: readonly string[],
    environment: Record<string, string>,
    private readonly log: string,
    folder: string,
  ) {
    const out = openSync(log, "a");
    const path = process.env.PATH ?? "";
    this.child = spawn(program, args, { cwd: folder, env: { PATH: path, ...environment }, stdio: ["ignore", out, out] });
  }

  /** What it has printed so far. */
  printed(): string {
    return readFileSync(this.log, "utf8");
  }

  hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** Ends it, and waits for its end. `SIGKILL` leaves it no last words. */
  async end(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
    if (this.hasEnded()) return;
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill(signal);
    await ended;
  }
}
