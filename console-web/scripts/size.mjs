// The JavaScript that a browser loads before it shows anything: what index.html names, and what that imports at once.
// Fails when it is more than LIMIT bytes, compressed. Run after `npm run build`.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const LIMIT = 450_000;
const dist = join(dirname(fileURLToPath(import.meta.url)), "..", "dist");

/** Values of `attribute` in the tags that match. */
function valuesOf(attribute, html, tag) {
  const tags = html.match(tag) ?? [];
  return tags.flatMap((text) => new RegExp(`\\b${attribute}="([^"]+)"`).exec(text)?.[1] ?? []);
}

/** Files that a module imports as it loads; `import(…)` comes later. */
function importsOf(file) {
  const code = readFileSync(file, "utf8");
  const named = [...code.matchAll(/\b(?:from|import)\s*["'](\.{1,2}\/[^"']+\.js)["']/g)];
  // A string that only looks like an import names no file.
  return named.map((match) => join(dirname(file), match[1])).filter((path) => existsSync(path));
}

const html = readFileSync(join(dist, "index.html"), "utf8");
const first = [
  ...valuesOf("src", html, /<script\b[^>]*>/g),
  ...valuesOf("href", html, /<link\b[^>]*\brel="modulepreload"[^>]*>/g),
];
if (first.length === 0) {
  console.error("dist/index.html names no script");
  process.exit(1);
}
const files = new Set();
const open = first.map((path) => join(dist, path));
while (open.length > 0) {
  const file = open.pop();
  if (files.has(file)) continue;
  files.add(file);
  open.push(...importsOf(file));
}

const sizes = [...files].map((file) => [relative(dist, file), gzipSync(readFileSync(file), { level: 9 }).length]);
sizes.sort((a, b) => b[1] - a[1]);
for (const [file, size] of sizes) console.log(`${String(size).padStart(9)}  ${file}`);
const total = sizes.reduce((sum, [, size]) => sum + size, 0);
console.log(`${String(total).padStart(9)}  bytes of JavaScript at first, gzip; at most ${LIMIT}`);
if (total > LIMIT) {
  console.error("The console's first load is too large: load what a page needs with that page (import(…)).");
  process.exit(1);
}
