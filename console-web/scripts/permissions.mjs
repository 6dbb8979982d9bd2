// Writes src/api/permissions.ts out of the OpenAPI document; with --check it only compares.
import { readFileSync, writeFileSync } from "node:fs";

const file = new URL("../src/api/permissions.ts", import.meta.url);
const document = JSON.parse(readFileSync(new URL("../../docs/openapi.json", import.meta.url), "utf8"));
const words = Object.values(document.paths)
  .flatMap((operations) => Object.values(operations))
  .map((operation) => operation["x-permission"])
  .filter((word) => word?.includes("."));
const names = [...new Set(words)].sort();
const text = `/** Made of docs/openapi.json by \`npm run generate\`: do not edit. */

/** What the operations of the management API ask for. */
export const PERMISSIONS = [
${names.map((name) => `  "${name}",`).join("\n")}
] as const;

/** One of them. */
export type Permission = (typeof PERMISSIONS)[number];
`;

if (process.argv.includes("--check")) {
  if (readFileSync(file, "utf8") !== text) {
    console.error("src/api/permissions.ts is not what docs/openapi.json says: run `npm run generate`");
    process.exit(1);
  }
} else {
  writeFileSync(file, text);
}
