/** Debian's Chromium, and what a page must never do. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import axe from "axe-core";
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from "playwright-core";
import type { Person, World } from "./world";

/** Where a console is. */
type Place = Pick<World, "url">;

/** Where screenshots and figures are left. */
export const ARTEFACTS = join(import.meta.dirname, "../../artefacts");

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** The browser of a test file. */
export async function startBrowser(): Promise<Browser> {
  mkdirSync(ARTEFACTS, { recursive: true });
  const quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"];
  // Root has no sandbox in Chromium, and CI is root.
  const root = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath: CHROMIUM, args: ["--disable-gpu", "--disable-dev-shm-usage", ...quiet, ...root] });
}

export interface Look {
  theme?: "light" | "dark";
  language?: "en" | "zh";
  width?: number;
  height?: number;
  /** IANA zone of the viewer. */
  zone?: string;
}

/** What a page did that it must not: errors of scripts, of the security policy, requests to elsewhere. */
export class Watched {
  readonly faults: string[] = [];

  constructor(
    readonly page: Page,
    readonly context: BrowserContext,
    private readonly world: Place,
  ) {
    page.on("pageerror", (error) => this.faults.push(`error: ${String(error)}`));
    page.on("console", (message) => {
      // The network's own lines say what the page shows better, and tests of failures cause them.
      const isOfNetwork = message.text().startsWith("Failed to load resource");
      if (["error", "warning"].includes(message.type()) && !isOfNetwork) this.faults.push(`console: ${message.text()}`);
    });
    page.on("request", (request) => {
      if (!request.url().startsWith(world.url) && !request.url().startsWith("data:") && !request.url().startsWith("blob:")) {
        this.faults.push(`request to elsewhere: ${request.url()}`);
      }
    });
    page.on("dialog", (dialog) => {
      // A test that goes elsewhere means to: only the browser asks so, never a page.
      if (dialog.type() === "beforeunload") {
        void dialog.accept();
        return;
      }
      this.faults.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
  }

  /** Opens a page of the console. */
  async open(path: string): Promise<Page> {
    await this.page.goto(this.world.url + path);
    return this.page;
  }

  /** Signs in as this person, on whatever page is open. */
  async signIn(person: Person): Promise<void> {
    await this.page.locator("input[autocomplete=username]").fill(person.name);
    await this.page.locator("input[autocomplete=current-password]").fill(person.password);
    await this.page.locator("button[type=submit]").click();
  }

  /** Waits until the page has what it asked for. */
  async settled(): Promise<void> {
    await this.page.locator("#content h1").waitFor();
    await this.page.waitForFunction(() => document.querySelector('#content [aria-busy="true"], #content .ant-spin-spinning, #content .waiting') === null);
  }

  /** Serious findings of axe-core on what is shown now. */
  async axe(): Promise<string[]> {
    // By the debugger's door: the page's own policy lets nobody else in.
    await this.page.evaluate(axe.source);
    const results = await this.page.evaluate(async () => {
      const found = await (window as unknown as { axe: typeof axe }).axe.run(document, {
        runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
      });
      return found.violations
        .filter((violation) => violation.impact === "serious" || violation.impact === "critical")
        .flatMap((violation) => violation.nodes.map((node) => `${violation.id}: ${node.target.join(" ")} ${node.any.concat(node.all, node.none).map((check) => check.message).join("; ")}`));
    });
    return results;
  }

  /** Leaves a picture among the artefacts. */
  async picture(name: string): Promise<void> {
    await this.page.screenshot({ path: join(ARTEFACTS, `${name}.png`) });
  }
}

/** A window with a fresh profile. */
export async function openWindow(browser: Browser, world: Place, look: Look = {}, storageState?: BrowserContextOptions["storageState"]): Promise<Watched> {
  const { theme = "light", language = "en", width = 1280, height = 860, zone = "Europe/Berlin" } = look;
  const context = await browser.newContext({ viewport: { width, height }, timezoneId: zone, acceptDownloads: true, reducedMotion: "reduce", storageState });
  // A bound for what never comes, as for all else here: not a measure.
  context.setDefaultTimeout(60_000);
  await context.addInitScript(
    ([appearance, spoken]) => {
      // Where one begins; what is chosen later stays.
      for (const [key, value] of [["carillon.appearance", appearance], ["carillon.language", spoken]] as const) {
        if (localStorage.getItem(key) === null) localStorage.setItem(key, value);
      }
    },
    [theme, language] as const,
  );
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: world.url });
  return new Watched(await context.newPage(), context, world);
}

/** A window in which this person is signed in. */
export async function windowOf(browser: Browser, world: Place, person: Person, look: Look = {}): Promise<Watched> {
  const watched = await openWindow(browser, world, look);
  await watched.open("/");
  await watched.signIn(person);
  await watched.page.locator("#content").waitFor();
  return watched;
}

/** What a browser does with a tab that is not looked at, or is again. Without a screen all tabs count as visible. */
export async function show(page: Page, state: "visible" | "hidden"): Promise<void> {
  await page.evaluate((now) => {
    Object.defineProperty(document, "visibilityState", { configurable: true, get: () => now });
    document.dispatchEvent(new Event("visibilitychange", { bubbles: true }));
  }, state);
}
