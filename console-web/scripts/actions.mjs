// Writes src/api/actions.ts out of the OpenAPI document; with --check it only compares.
import { readFileSync, writeFileSync } from "node:fs";

const file = new URL("../src/api/actions.ts", import.meta.url);
const { schemas } = JSON.parse(readFileSync(new URL("../../docs/openapi.json", import.meta.url), "utf8")).components;
const lines = Object.entries(schemas.AuditAction["x-actions"]).map(([action, { target }]) => `  ${action}: "${target}",`);
const text = `/** Made of docs/openapi.json by \`npm run generate\`: do not edit. */

/** What can be done, and the kind of thing that it is done to. */
export const ACTIONS = {
${lines.join("\n")}
} as const;

/** One of them; a newer node may know more. */
export type Action = keyof typeof ACTIONS;
`;

if (process.argv.includes("--check")) {
  if (readFileSync(file, "utf8") !== text) {
    console.error("src/api/actions.ts is not what docs/openapi.json says: run `npm run generate`");
    process.exit(1);
  }
} else {
  writeFileSync(file, text);
}
