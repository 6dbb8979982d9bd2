/** The tasks before and after one, as the node knows them. */
import { $api, type Schema } from "../../api/client";
import { Waiting } from "../../parts/Waiting";
import { Failure } from "../../parts/Failure";
import { Graph } from "./Graph";

export function Neighbours({ task }: { task: Schema<"Task"> }) {
  const { data, error, refetch } = $api.useQuery("get", "/tasks/{id}/graph", { params: { path: { id: task.id } } });
  if (data === undefined && error === null) return <Waiting />;
  return (
    <>
      <Failure error={error} again={() => void refetch()} />
      {data !== undefined && <Graph self={task.id} tasks={data.tasks} links={data.links} complete={data.complete} />}
    </>
  );
}
