// Writes src/api/codes.ts out of the OpenAPI document; with --check it only compares.
import { readFileSync, writeFileSync } from "node:fs";

const file = new URL("../src/api/codes.ts", import.meta.url);
const { schemas } = JSON.parse(readFileSync(new URL("../../docs/openapi.json", import.meta.url), "utf8")).components;

function listOf(schema) {
  const line = ([code, params]) => {
    const fields = Object.entries(params).map(([name, type]) => `${name}: ${type}`);
    return `  ${code}: ${fields.length === 0 ? "None" : `{ ${fields.join("; ")} }`};`;
  };
  return Object.entries(schemas[schema]["x-params"]).map(line).join("\n");
}

const text = `/** Made of docs/openapi.json by \`npm run generate\`: do not edit. */

/** A code without parameters. */
type None = Record<string, never>;

/** The codes of what is wrong with a field, and their parameters. */
export interface FieldParams {
${listOf("FieldCode")}
}

/** The codes of problems, and their parameters. */
export interface ProblemParams {
${listOf("ProblemCode")}
}
`;

if (process.argv.includes("--check")) {
  if (readFileSync(file, "utf8") !== text) {
    console.error("src/api/codes.ts is not what docs/openapi.json says: run `npm run generate`");
    process.exit(1);
  }
} else {
  writeFileSync(file, text);
}
