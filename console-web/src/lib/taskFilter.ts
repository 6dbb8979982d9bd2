/** Filters of the list of tasks that the node does not have: they are looked for in what was read. */

export interface TaskFilter {
  /** A part of the name, in any case. */
  name?: string;
  /** A part of the handler's name. */
  handler?: string;
}

interface Named {
  name: string;
  handler: string;
}

function holds(text: string, part: string | undefined): boolean {
  return part === undefined || text.toLowerCase().includes(part.trim().toLowerCase());
}

export function matches(task: Named, { name, handler }: TaskFilter): boolean {
  return holds(task.name, name) && holds(task.handler, handler);
}
