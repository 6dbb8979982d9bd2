// Writes src/api/taskFields.ts, what a task's fields may hold, out of the OpenAPI document; with --check it only compares.
import { readFileSync, writeFileSync } from "node:fs";

const file = new URL("../src/api/taskFields.ts", import.meta.url);
const { schemas } = JSON.parse(readFileSync(new URL("../../docs/openapi.json", import.meta.url), "utf8")).components;
const order = schemas.TaskSpec["x-order"];
const properties = schemas.NewTask.properties;

const named = (schema) => schemas[schema?.$ref?.split("/").pop()];
const words = (schema) => named(schema)?.enum ?? named(schema?.items)?.enum;
/** Of every field that has it. */
const each = (of) =>
  order
    .map((name) => [name, of(properties[name])])
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `  ${name}: ${JSON.stringify(value)},`)
    .join("\n");

const range = ({ minimum, maximum, "x-unit": unit }) => (minimum === undefined || unit === "instant" ? undefined : { min: minimum, max: maximum });

const text = `/** Made of docs/openapi.json by \`npm run generate\`: do not edit. */
import type { Schema } from "./client";

/** A new task, before anything is said about it. */
export const DEFAULTS: Schema<"TaskSpec"> = {
${each((property) => property.default ?? "")}
};

/** What the fields with a choice may be. */
export const CHOICES = {
${each(words)}
} as const;

/** What numbers may be. */
export const RANGES: { readonly [name: string]: { readonly min: number; readonly max?: number } | undefined } = {
${each(range)}
};

/** What they count, where it is not things. */
export const UNITS: { readonly [name: string]: "ms" | "%" | "instant" | undefined } = {
${each((property) => property["x-unit"])}
};

/** What the end of a parent may be asked to be; the first is the default. */
export const OUTCOMES = ${JSON.stringify(schemas.ParentOutcome.enum)} as const;
`;

if (process.argv.includes("--check")) {
  if (readFileSync(file, "utf8") !== text) {
    console.error("src/api/taskFields.ts is not what docs/openapi.json says: run `npm run generate`");
    process.exit(1);
  }
} else {
  writeFileSync(file, text);
}
