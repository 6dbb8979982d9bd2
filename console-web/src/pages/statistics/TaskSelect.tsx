/** Chooses the task that the figures are of; more tasks are read as one scrolls, or types a whole name. */
import { Select } from "antd";
import { useState, type UIEvent } from "react";
import { useTranslation } from "react-i18next";
import { $api, type Schema } from "../../api/client";
import { useFilters } from "../../lib/search";
import { BY_AFTER, itemsOf } from "../../parts/List";

const NEAR_END_PX = 200;

export function TaskSelect({ tenant }: { tenant: string | undefined }) {
  const { t } = useTranslation("statistics");
  const { filters, set } = useFilters(["task", "step"]);
  const { task } = filters;
  const [typed, setTyped] = useState("");
  const tasks = $api.useInfiniteQuery("get", "/tasks", { params: { query: { tenant, limit: 500 } } }, BY_AFTER);
  const named = $api.useQuery("get", "/tasks", { params: { query: { tenant, name: typed, limit: 20 } } }, { enabled: typed !== "" && tasks.hasNextPage });
  const chosen = $api.useQuery("get", "/tasks/{id}", { params: { path: { id: task ?? "" } } }, { enabled: task !== undefined });
  const known = new Map<string, Pick<Schema<"Task">, "id" | "name" | "tenant">>();
  for (const each of [...itemsOf(tasks), ...(named.data?.items ?? []), ...(chosen.data === undefined ? [] : [chosen.data])]) known.set(each.id, each);
  const options = [...known.values()]
    .map(({ id, name, tenant: of }) => ({ value: id, label: tenant === undefined ? `${name} · ${of}` : name }))
    .sort((a, b) => a.label.localeCompare(b.label));
  const onScroll = ({ currentTarget: box }: UIEvent<HTMLElement>) => {
    const isNearEnd = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END_PX;
    if (isNearEnd && tasks.hasNextPage && !tasks.isFetchingNextPage) void tasks.fetchNextPage();
  };
  return (
    <Select
      aria-label={t("task")}
      className="task-select"
      showSearch={{ optionFilterProp: "label", onSearch: setTyped }}
      allowClear
      placeholder={t("find_task")}
      loading={tasks.isFetching}
      value={task}
      options={options}
      onPopupScroll={onScroll}
      onChange={(value: string | undefined) => set({ task: value })}
    />
  );
}
