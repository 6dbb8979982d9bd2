/** The tasks that name a calendar. */
import { Card, Flex } from "antd";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { $api, type Schema } from "../../api/client";
import { useLink } from "../../lib/tenant";
import { Failure } from "../../parts/Failure";
import { TaskState } from "../../parts/Tags";

/** More are not named here. */
const SHOWN = 20;

/** The first tasks that name it, and whether there are more; nothing while that is not known, or not to be known. */
export function useTasksOf(tenant: string, calendar: string, enabled: boolean) {
  const query = { tenant, calendar, limit: SHOWN };
  return $api.useQuery("get", "/tasks", { params: { query } }, { enabled });
}

export function UsedBy({ page, error }: { page: Schema<"TaskPage"> | undefined; error: unknown }) {
  const { t: own } = useTranslation("calendars");
  const link = useLink();
  return (
    <Card size="small" title={<h2 className="card-title">{own("editor.used_by")}</h2>}>
      <Failure error={error} />
      {page?.items.length === 0 && own("editor.used_by_none")}
      {page !== undefined && page.items.length > 0 && (
        <Flex vertical gap="small">
          <Flex gap="small" wrap component="ul" className="cards">
            {page.items.map((task) => (
              <li key={task.id}>
                <Link to={link(`/tasks/${task.id}`)}>{`${task.app} / ${task.name}`}</Link> <TaskState state={task.state} />
              </li>
            ))}
          </Flex>
          {page.next != null && <span>{own("editor.used_by_more", { n: SHOWN })}</span>}
          <span className="soft">{own("editor.used_by_help")}</span>
        </Flex>
      )}
    </Card>
  );
}
