/** What a file or a folder takes from others never leads back to it. */
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import ts from "typescript";
import { expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "../src");

const files = readdirSync(ROOT, { recursive: true, encoding: "utf8" }).filter((name) => /\.tsx?$/.test(name)).map((name) => join(ROOT, name));

function importsOf(file: string): string[] {
  const { importedFiles } = ts.preProcessFile(readFileSync(file, "utf8"));
  const near = importedFiles.map(({ fileName }) => fileName).filter((name) => name.startsWith("."));
  return near.flatMap((name) => {
    const whole = join(dirname(file), name);
    return [whole, `${whole}.ts`, `${whole}.tsx`, join(whole, "index.ts"), join(whole, "index.tsx")].filter((each) => files.includes(each));
  });
}

type Arrows = Map<string, Set<string>>;

function arrows(nameOf: (file: string) => string): Arrows {
  const all: Arrows = new Map();
  for (const file of files) {
    const from = nameOf(file);
    const to = all.get(from) ?? new Set<string>();
    for (const each of importsOf(file).map(nameOf)) if (each !== from) to.add(each);
    all.set(from, to);
  }
  return all;
}

function reached(from: string, all: Arrows): Set<string> {
  const seen = new Set<string>();
  const open = [from];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    for (const to of all.get(at) ?? []) {
      if (!seen.has(to)) open.push(to);
      seen.add(to);
    }
  }
  return seen;
}

/** Arrows both ends of which lead to each other. */
function circular(all: Arrows): string[] {
  const reach = new Map([...all.keys()].map((name) => [name, reached(name, all)]));
  return [...all].flatMap(([from, to]) => [...to].filter((each) => reach.get(each)?.has(from)).map((each) => `${from} -> ${each}`));
}

it("no file leads back to itself", () => {
  expect(files.length).toBeGreaterThan(100);
  expect(circular(arrows((file) => relative(ROOT, file)))).toEqual([]);
});

it("no folder leads back to itself", () => {
  const folder = (file: string) => relative(ROOT, file).split("/").slice(0, relative(ROOT, file).startsWith("pages/") ? 2 : 1).join("/");
  expect(circular(arrows(folder))).toEqual([]);
});
