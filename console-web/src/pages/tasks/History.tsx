/** What was done with a task: who, when, from where, what it changed, and how to go back to it. */
import { Button, Flex, Typography } from "antd";
import { useTranslation } from "react-i18next";
import { $api, type Schema } from "../../api/client";
import { Failure } from "../../parts/Failure";
import { BY_BEFORE, itemsOf } from "../../parts/List";
import { HistoryEntry } from "./HistoryEntry";
import { useTaskMay } from "./useTaskMay";

/** Nothing for those who may not read the audit. */
export function History({ task }: { task: Schema<"Task"> }) {
  const allowed = useTaskMay(task.tenant, task.app);
  return allowed("audit.read") ? <Entries task={task} mayRestore={allowed("tasks.edit")} /> : null;
}

function Entries({ task, mayRestore }: { task: Schema<"Task">; mayRestore: boolean }) {
  const { t } = useTranslation("tasks");
  const { t: common } = useTranslation();
  const query = { kind: "task", target: task.id, tenant: task.tenant, limit: 20 };
  const pages = $api.useInfiniteQuery("get", "/audit", { params: { query } }, BY_BEFORE);
  const entries = itemsOf(pages);
  return (
    <section aria-labelledby="history">
      <Typography.Title level={2} id="history" className="section-title">
        {t("history.title")}
      </Typography.Title>
      <Failure error={pages.error} again={() => void pages.refetch()} />
      {entries.length === 0 && !pages.isPending && !pages.hasNextPage && <Typography.Text type="secondary">{t("history.empty")}</Typography.Text>}
      <ol className="plain-list">
        {entries.map((entry) => (
          <li key={entry.id} className="plain-item">
            <HistoryEntry task={task} entry={entry} mayRestore={mayRestore} />
          </li>
        ))}
      </ol>
      {pages.hasNextPage && (
        <Flex justify="center">
          <Button loading={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
            {common("more")}
          </Button>
        </Flex>
      )}
    </section>
  );
}
