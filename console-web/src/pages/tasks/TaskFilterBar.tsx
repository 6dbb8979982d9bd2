/** The filters of the list of tasks; the address bar keeps them. */
import { Button, Flex, Input, Select } from "antd";
import { useTranslation } from "react-i18next";
import { $api } from "../../api/client";
import type { Filters } from "../../lib/search";
import { TASK_STATES } from "../../lib/states";

type Name = "app" | "search" | "state";

interface Properties {
  tenant: string | undefined;
  filters: Filters<Name>;
  set: (change: { [Key in Name]?: string | undefined }) => void;
  clear: () => void;
  isFiltered: boolean;
}

export function TaskFilterBar({ tenant, filters, set, clear, isFiltered }: Properties) {
  const { t } = useTranslation();
  const { t: words } = useTranslation("tasks");
  const apps = $api.useQuery("get", "/apps", { params: { query: { tenant, limit: 500 } } }, { staleTime: 60_000 });
  const names = new Set([...(apps.data?.items.map(({ name }) => name) ?? []), ...(filters.app === undefined ? [] : [filters.app])]);
  return (
    <Flex gap="small" wrap role="search" aria-label={t("filters")}>
      <Input.Search
        aria-label={words("list.search")}
        placeholder={words("list.search")}
        allowClear
        maxLength={100}
        value={filters.search ?? ""}
        onChange={(event) => set({ search: event.target.value })}
        className="filter-name"
      />
      <Select
        aria-label={t("app")}
        placeholder={t("app")}
        allowClear
        showSearch
        value={filters.app ?? null}
        onChange={(app: string | undefined) => set({ app })}
        options={[...names].sort((a, b) => a.localeCompare(b)).map((name) => ({ value: name, label: name }))}
        className="filter-select"
      />
      <Select
        aria-label={t("status")}
        placeholder={t("status")}
        allowClear
        value={filters.state ?? null}
        onChange={(state: string | undefined) => set({ state })}
        options={TASK_STATES.map((state) => ({ value: state, label: t(`task_state.${state}`) }))}
        className="filter-select"
      />
      {isFiltered && (
        <Button type="link" onClick={clear}>
          {t("clear_filters")}
        </Button>
      )}
    </Flex>
  );
}
