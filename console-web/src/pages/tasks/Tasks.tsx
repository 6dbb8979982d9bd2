/** All tasks: find one, see when it fires next and whether it is well, act on one or on many. */
import { Button, Flex } from "antd";
import { useMemo, useState, type Key } from "react";
import { useTranslation } from "react-i18next";
import { useNavigate } from "react-router";
import type { QueryOf } from "../../api/client";
import { useSession } from "../../api/session";
import { useFilters } from "../../lib/search";
import { useLink, useTenant } from "../../lib/tenant";
import { FilterFold } from "../../parts/FilterFold";
import { itemsOf, List } from "../../parts/List";
import { Page } from "../../parts/Page";
import { BulkActions } from "./BulkActions";
import { ExportButton } from "./ExportButton";
import { ImportButton } from "./ImportDrawer";
import { TaskCard, taskColumns } from "./taskColumns";
import { TaskFilterBar } from "./TaskFilterBar";
import { useTasksMay } from "./useTaskMay";
import { useTasks } from "./useTasks";

const FILTERS = ["app", "search", "state"] as const;

export default function Tasks() {
  const { t: common } = useTranslation();
  const { t } = useTranslation("tasks");
  const { may } = useSession();
  const { tenant } = useTenant();
  const { filters, set, clear, isFiltered } = useFilters(FILTERS);
  // A word of the address: the node refuses one that it does not know.
  const pages = useTasks({ ...filters, tenant, state: filters.state as QueryOf<"list_tasks">["state"] });
  const [chosen, setChosen] = useState<Key[]>([]);
  const scope = tenant === undefined ? {} : { tenant };
  const columns = useMemo(() => taskColumns({ t, common, withTenant: tenant === undefined }), [t, common, tenant]);
  const canBulk = may("tasks.start", scope) || may("tasks.stop", scope);
  const allowed = useTasksMay();
  const selected = itemsOf(pages).filter(({ id }) => chosen.includes(id));
  return (
    <Page title={common("pages.tasks")} actions={<PageActions tenant={tenant} app={filters.app} />}>
      <FilterFold count={Object.keys(filters).length} clear={clear}>
        <TaskFilterBar tenant={tenant} filters={filters} set={set} clear={clear} isFiltered={isFiltered} />
      </FilterFold>
      {selected.length > 0 && <BulkActions tasks={selected} onClear={() => setChosen([])} />}
      <List
        label={common("pages.tasks")}
        pages={pages}
        rowKey={(task) => task.id}
        columns={columns}
        card={(task) => <TaskCard task={task} withTenant={tenant === undefined} />}
        isFiltered={isFiltered}
        whenEmpty={<span>{t(may("tasks.create", scope) ? "list.empty_create" : "list.empty")}</span>}
        rowSelection={
          canBulk
            ? {
                selectedRowKeys: chosen,
                onChange: setChosen,
                columnWidth: 40,
                getCheckboxProps: (task) => ({
                  "aria-label": t("list.select", { name: task.name }),
                  disabled: !allowed("tasks.start", task) && !allowed("tasks.stop", task),
                }),
              }
            : undefined
        }
      />
    </Page>
  );
}

function PageActions({ tenant, app }: { tenant: string | undefined; app: string | undefined }) {
  const { t } = useTranslation("tasks");
  const { may } = useSession();
  const link = useLink();
  const navigate = useNavigate();
  const scope = tenant === undefined ? {} : { tenant };
  return (
    <Flex gap="small" wrap>
      <ExportButton tenant={tenant} app={app} />
      {may("tasks.apply", scope) && <ImportButton />}
      {may("tasks.create", scope) && (
        <Button type="primary" onClick={() => void navigate(link("/tasks/new", { app }))}>
          {t("list.create")}
        </Button>
      )}
    </Flex>
  );
}
