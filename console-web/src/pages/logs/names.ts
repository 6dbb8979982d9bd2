/** Names of what a task log knows by id alone. */
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { $api } from "../../api/client";
import { useSession } from "../../api/session";
import type { Log } from "../../lib/taskLog";

interface Names {
  task: (log: Pick<Log, "task" | "task_name">) => string;
  executor: (id: string) => string;
  node: (id: string) => string;
  /** Whether a run is one of an executor of xxl-job: that which has it, or, while none is known, those of its app. */
  isPlain: (log: Pick<Log, "app" | "executor">) => boolean;
}

const LIMIT = 500;
// Names change rarely; changes are told by the stream of events.
const KEPT = { staleTime: 60_000 };

/** Functions that name tasks, executors and nodes; what has no known name, or may not be read, is shown by its id. */
export function useNames(tenant: string | undefined): Names {
  const { may } = useSession();
  const { t } = useTranslation("logs");
  const executors = $api.useQuery("get", "/executors", { params: { query: { tenant, limit: LIMIT } } }, { ...KEPT, enabled: may("executors.read") });
  const nodes = $api.useQuery("get", "/nodes", {}, { ...KEPT, enabled: may("nodes.read") });
  return useMemo(() => {
    const online = new Map(executors.data?.items.map((executor) => [executor.id, executor]));
    const plainApps = new Set(executors.data?.items.filter(({ plain }) => plain).map((executor) => executor.app_id));
    const ofNode = new Map(nodes.data?.items.map((node) => [node.id, node.name]));
    return {
      task: (log) => log.task_name ?? log.task,
      executor: (id) => online.get(id)?.address.replace(/^https?:\/\//, "") ?? t("unknown_executor", { id }),
      isPlain: ({ app, executor }) => (executor == null ? undefined : online.get(executor)?.plain) ?? plainApps.has(app),
      node: (id) => ofNode.get(id) ?? t("unknown_node", { id }),
    };
  }, [executors.data, nodes.data, t]);
}
