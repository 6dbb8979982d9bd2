/** The tasks before and after one, as the node knows them. */
import type { Schema } from "../../api/client";
import { Graph } from "./Graph";

export function Neighbours({ task }: { task: Schema<"Task"> }) {
  const tasks = [...task.parents.map((parent) => ({ id: parent.task })), { id: task.id, name: task.name, app_name: task.app, state: task.state }];
  const links = task.parents.map((parent) => ({ from: parent.task, to: task.id, on: parent.on ?? "success" }));
  return <Graph self={task.id} tasks={tasks} links={links} complete />;
}
