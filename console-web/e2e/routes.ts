/** The addresses of the console's pages, read from its own list. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

const source = readFileSync(join(import.meta.dirname, "../src/app/pages.tsx"), "utf8");

/** Their patterns: `/tasks/:id`. */
export const PAGES: readonly string[] = [...source.matchAll(/path: "([^"]+)"/g)].map((match) => match[1] ?? "");
