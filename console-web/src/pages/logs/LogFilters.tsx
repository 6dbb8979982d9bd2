/** The filters of the list of task logs. The address holds them. */
import { Button, Checkbox, DatePicker, Flex, Segmented, Select, type SelectProps } from "antd";
import dayjs from "dayjs";
import { useDeferredValue, useState } from "react";
import { useTranslation } from "react-i18next";
import { $api } from "../../api/client";
import { useSession } from "../../api/session";
import { orderOf, rangeOf, RANGES, type LogFilters } from "../../lib/logList";
import { LOG_STATUSES } from "../../lib/states";
import { viewerZone } from "../../lib/time";
import { TRIGGERS, REASONS } from "./Words";

type Change = (change: LogFilters) => void;

interface ChoiceProperties {
  name: string;
  value: string | undefined;
  options: SelectProps["options"];
  onChange: (value: string | undefined) => void;
  /** What was typed; absent: the options are all there are. */
  onSearch?: (text: string) => void;
}

function Choice({ name, value, options, onChange, onSearch }: ChoiceProperties) {
  return (
    <Select<string>
      aria-label={name}
      placeholder={name}
      className="log-filter"
      allowClear
      showSearch={{ optionFilterProp: "label", onSearch }}
      popupMatchSelectWidth={false}
      value={value ?? null}
      options={options}
      onChange={(chosen: string | undefined) => onChange(chosen)}
    />
  );
}

/** A task, found by its name: among the first hundreds by a part of it, beyond them by the whole of it. */
function TaskChoice({ tenant, value, onChange }: { tenant: string | undefined; value: string | undefined; onChange: (value: string | undefined) => void }) {
  const { t } = useTranslation();
  const [text, setText] = useState("");
  const typed = useDeferredValue(text.trim());
  const first = $api.useQuery("get", "/tasks", { params: { query: { tenant, limit: 500 } } }, { staleTime: 60_000 });
  const isMissing = typed !== "" && first.data?.next != null && !first.data.items.some((task) => task.name.includes(typed));
  const named = $api.useQuery("get", "/tasks", { params: { query: { tenant, name: typed } } }, { enabled: isMissing });
  const chosen = $api.useQuery("get", "/tasks/{id}", { params: { path: { id: value ?? "" } } }, { enabled: value !== undefined, staleTime: 60_000 });
  const known = new Map([...(chosen.data === undefined ? [] : [chosen.data]), ...(named.data?.items ?? []), ...(first.data?.items ?? [])].map((task) => [task.id, task]));
  const options = [...known.values()].map((task) => ({ value: task.id, label: tenant === undefined ? `${task.name} · ${task.tenant}` : task.name }));
  // A task that is gone leaves its logs.
  if (value !== undefined && !known.has(value)) options.push({ value, label: value });
  return <Choice name={t("task")} value={value} options={options} onChange={onChange} onSearch={setText} />;
}

function AppChoice({ tenant, value, onChange }: { tenant: string | undefined; value: string | undefined; onChange: (value: string | undefined) => void }) {
  const { t } = useTranslation();
  const { data } = $api.useQuery("get", "/apps", { params: { query: { tenant, limit: 500 } } }, { staleTime: 60_000 });
  const options = (data?.items ?? []).map((app) => ({ value: app.id, label: tenant === undefined ? `${app.name} · ${app.tenant}` : app.name }));
  return <Choice name={t("app")} value={value} options={options} onChange={onChange} />;
}

function ExecutorChoice({ tenant, value, onChange }: { tenant: string | undefined; value: string | undefined; onChange: (value: string | undefined) => void }) {
  const { t } = useTranslation();
  const { data } = $api.useQuery("get", "/executors", { params: { query: { tenant, limit: 500 } } }, { staleTime: 60_000 });
  const options = (data?.items ?? []).map((executor) => ({ value: executor.id, label: executor.address }));
  if (value !== undefined && !options.some((option) => option.value === value)) options.push({ value, label: value });
  return <Choice name={t("executor")} value={value} options={options} onChange={onChange} />;
}

function instantOf(text: string | undefined): dayjs.Dayjs | null {
  const at = Number(text);
  return text === undefined || !Number.isFinite(at) ? null : dayjs(at);
}

function TimeChoice({ filters, set }: { filters: LogFilters; set: Change }) {
  const { t } = useTranslation("logs");
  const range = rangeOf(filters);
  return (
    <Flex gap="small" wrap align="center" className="log-times">
      <Segmented<string>
        aria-label={t("span_of_time", { zone: viewerZone() })}
        className="log-ranges"
        value={range ?? "own"}
        options={[...RANGES, ...(range === undefined ? (["own"] as const) : [])].map((each) => ({ value: each, label: t(`range.${each}`) }))}
        onChange={(chosen) => {
          if (chosen !== "own") set({ range: chosen, from: undefined, until: undefined });
        }}
      />
      <DatePicker.RangePicker
        showTime
        className="log-span"
        allowEmpty={[true, true]}
        aria-label={t("span_of_time", { zone: viewerZone() })}
        title={t("span_of_time", { zone: viewerZone() })}
        placeholder={[t("from"), t("until")]}
        value={[instantOf(filters.from), instantOf(filters.until)]}
        onChange={(chosen) => set({ range: undefined, from: chosen?.[0]?.valueOf().toString(), until: chosen?.[1]?.valueOf().toString() })}
      />
    </Flex>
  );
}

interface Properties {
  tenant: string | undefined;
  filters: LogFilters;
  set: Change;
  clear: () => void;
  isFiltered: boolean;
}

export function LogFilterBar({ tenant, filters, set, clear, isFiltered }: Properties) {
  const { t } = useTranslation("logs");
  const { t: common } = useTranslation();
  const { may } = useSession();
  const statuses = LOG_STATUSES.filter((word) => word !== "stopping").map((value) => ({ value, label: common(`log_status.${value}`) }));
  return (
    <Flex vertical gap="small" role="search" aria-label={common("filters")}>
      <Flex gap="small" wrap>
        <Choice name={common("status")} value={filters.status} options={statuses} onChange={(status) => set({ status })} />
        <Choice
          name={t("reason")}
          value={filters.reason}
          options={REASONS.map((value) => ({ value, label: t(`reason_short.${value}`) }))}
          onChange={(reason) => set({ reason })}
        />
        <Choice
          name={t("trigger")}
          value={filters.trigger}
          options={TRIGGERS.map((value) => ({ value, label: common(`trigger.${value}`) }))}
          onChange={(trigger) => set({ trigger })}
        />
        {may("tasks.read") && <TaskChoice tenant={tenant} value={filters.task} onChange={(task) => set({ task })} />}
        {may("apps.read") && <AppChoice tenant={tenant} value={filters.app} onChange={(app) => set({ app })} />}
        {may("executors.read") && <ExecutorChoice tenant={tenant} value={filters.executor} onChange={(executor) => set({ executor })} />}
        <Select
          aria-label={t("order")}
          value={orderOf(filters)}
          options={(["newest", "oldest"] as const).map((value) => ({ value, label: t(value) }))}
          onChange={(order) => set({ order })}
        />
        {isFiltered && <Button onClick={clear}>{common("clear_filters")}</Button>}
      </Flex>
      <Flex gap="small" wrap align="center">
        <TimeChoice filters={filters} set={set} />
        {filters.executor === undefined && filters.reason === undefined && (
          <Checkbox checked={filters.shards !== undefined} onChange={(event) => set({ shards: event.target.checked ? "1" : undefined })}>
            {t("as_rows")}
          </Checkbox>
        )}
      </Flex>
    </Flex>
  );
}
