/** Task files (docs/tasks.md) as the console reads and writes them: as JSON. */
import type { Schema } from "../api/client";

export type TaskFile = Schema<"TaskFile"> & { tenant?: string; app?: string };

/** What is wrong with a text that should be a task file, before the node has seen it. */
export type NoTaskFile = "empty" | "no_json" | "no_file" | "version";

/** The version of the format that the console writes. */
const VERSION = 1;

export function readTaskFile(text: string): { file: Schema<"TaskFile"> } | { problem: NoTaskFile; message?: string } {
  if (text.trim() === "") return { problem: "empty" };
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch (error) {
    return { problem: "no_json", message: error instanceof Error ? error.message : "" };
  }
  if (typeof read !== "object" || read === null || !("task" in read) || !Array.isArray(read.task)) return { problem: "no_file" };
  if (!("version" in read) || read.version !== VERSION) return { problem: "version" };
  // All that stands at the top goes to the node, which knows what it means.
  const tasks: unknown[] = read.task;
  return { file: { ...read, version: VERSION, task: tasks } };
}

/** Pages of an export as one file, laid out for people. */
export function writeTaskFile(pages: readonly Schema<"Exported">[]): string {
  return `${JSON.stringify({ version: VERSION, task: pages.flatMap(({ task }) => task) }, null, 2)}\n`;
}

/** `tasks-retail-orders.json`, of what was exported. */
export function fileName(...parts: (string | undefined)[]): string {
  const named = parts.filter((part) => part !== undefined).map((part) => part.replaceAll(/[^\p{L}\p{N}._-]+/gu, "_"));
  return `${["tasks", ...named].join("-")}.json`;
}
