/** The editor's sections but for the schedule and the parents. */
import { AutoComplete, Checkbox, Flex, Select, Typography } from "antd";
import { useTranslation } from "react-i18next";
import { $api } from "../../api/client";
import { useSession } from "../../api/session";
import { CHOICES } from "../../lib/definition";
import { useFieldLabel } from "./Changes";
import type { Draft } from "./draft";
import { ChoiceRadios, ChoiceSelect, idOf, InstantField, Labelled, NumberField, SpanField, TagsField, TextField, YesNoField } from "./fields";
import { useChoiceWords } from "./FieldValue";
import { ParamsInput } from "./ParamsInput";
import { PRIORITIES } from "./priorities";

interface Properties {
  draft: Draft;
}

/** Handlers that executors of the app declare, offered while one types. */
function HandlerField({ draft }: Properties) {
  const { may } = useSession();
  const { tenant, app } = draft;
  const enabled = app !== "" && may("executors.read", { tenant });
  const { data } = $api.useQuery("get", "/executors", { params: { query: { tenant, app, limit: 100 } } }, { enabled, staleTime: 60_000 });
  const handlers = [...new Set(data?.items.flatMap((executor) => executor.handlers))].sort((a, b) => a.localeCompare(b));
  return (
    <Labelled draft={draft} name="handler" required>
      <AutoComplete
        id={idOf("handler")}
        value={draft.values.handler}
        onChange={(handler: string) => draft.set("handler", handler)}
        options={handlers.map((value) => ({ value }))}
        showSearch={{ filterOption: (typed, option) => option?.value.toLowerCase().includes(typed.toLowerCase()) ?? false }}
      />
    </Labelled>
  );
}

export function WhatSection({ draft }: Properties) {
  return (
    <>
      <TextField draft={draft} name="name" required />
      <HandlerField draft={draft} />
      <Labelled draft={draft} name="params">
        <ParamsInput id={idOf("params")} value={draft.values.params} onChange={(params) => draft.set("params", params)} />
      </Labelled>
      <TextField draft={draft} name="description" rows={2} />
    </>
  );
}

export function WhereSection({ draft }: Properties) {
  return (
    <>
      <ChoiceSelect draft={draft} name="routing" />
      <TagsField draft={draft} name="tags" />
      <TagsField draft={draft} name="tags_any" />
      <TagsField draft={draft} name="tags_none" />
    </>
  );
}

export function BusySection({ draft }: Properties) {
  return (
    <>
      <ChoiceRadios draft={draft} name="block_strategy" />
      {draft.values.block_strategy !== "concurrent" && <ChoiceRadios draft={draft} name="block_scope" />}
      <NumberField draft={draft} name="max_concurrent" />
      <SpanField draft={draft} name="wait_timeout_ms" />
      <SpanField draft={draft} name="no_executor_timeout_ms" />
      <Labelled draft={draft} name="priority">
        <Select id={idOf("priority")} options={PRIORITIES} value={draft.values.priority} onChange={(priority: number) => draft.set("priority", priority)} className="short-select" />
      </Labelled>
    </>
  );
}

export function LateSection({ draft }: Properties) {
  const { misfire_strategy, expired_strategy } = draft.values;
  return (
    <>
      <ChoiceRadios draft={draft} name="misfire_strategy" />
      {misfire_strategy === "fire_all" && (
        <>
          <NumberField draft={draft} name="misfire_max" />
          <SpanField draft={draft} name="misfire_max_late_ms" />
        </>
      )}
      <ChoiceRadios draft={draft} name="expired_strategy" />
      {expired_strategy === "discard" && <SpanField draft={draft} name="expire_after_ms" />}
    </>
  );
}

/** Which failures are retried; to choose among them means all four at first. */
function RetryOn({ draft }: Properties) {
  const words = useChoiceWords()("retry_on");
  const labelOf = useFieldLabel();
  const { retry_on } = draft.values;
  return (
    <Labelled draft={draft} name="retry_on" isGroup>
      <Flex vertical gap={4} role="group" aria-label={labelOf("retry_on")}>
        {CHOICES.retry_on.map((kind) => (
          <Checkbox
            key={kind}
            checked={retry_on.includes(kind)}
            onChange={(event) => draft.set("retry_on", CHOICES.retry_on.filter((each) => (each === kind ? event.target.checked : retry_on.includes(each))))}
          >
            {words[kind]?.name} <Typography.Text type="secondary">– {words[kind]?.help}</Typography.Text>
          </Checkbox>
        ))}
      </Flex>
    </Labelled>
  );
}

export function FailSection({ draft }: Properties) {
  const { failure_strategy, retry_backoff } = draft.values;
  return (
    <>
      <SpanField draft={draft} name="timeout_ms" />
      <ChoiceRadios draft={draft} name="failure_strategy" />
      {failure_strategy === "retry" && (
        <>
          <NumberField draft={draft} name="max_retries" />
          <SpanField draft={draft} name="retry_interval_ms" />
          <ChoiceRadios draft={draft} name="retry_backoff" />
          {retry_backoff === "exponential" && <SpanField draft={draft} name="retry_max_interval_ms" />}
          <NumberField draft={draft} name="retry_jitter_percent" />
          <RetryOn draft={draft} />
          <YesNoField draft={draft} name="retry_elsewhere" />
        </>
      )}
      <ChoiceRadios draft={draft} name="delivery" />
      <NumberField draft={draft} name="pause_after_failures" />
    </>
  );
}

/** The tenant's calendars. */
function CalendarField({ draft }: Properties) {
  const { t } = useTranslation();
  const { may } = useSession();
  const { tenant } = draft;
  const { data } = $api.useQuery(
    "get",
    "/calendars/{tenant}",
    { params: { path: { tenant }, query: { limit: 500 } } },
    { enabled: tenant !== "" && may("calendars.read", { tenant }), staleTime: 60_000 },
  );
  const known = new Set([...(data?.items.map(({ name }) => name) ?? []), ...(draft.values.calendar === "" ? [] : [draft.values.calendar])]);
  return (
    <Labelled draft={draft} name="calendar">
      <Select
        id={idOf("calendar")}
        value={draft.values.calendar}
        onChange={(calendar: string) => draft.set("calendar", calendar)}
        options={[{ value: "", label: t("none") }, ...[...known].map((name) => ({ value: name, label: name }))]}
        className="wide-select"
      />
    </Labelled>
  );
}

export function LimitsSection({ draft }: Properties) {
  const { calendar, schedule } = draft.values;
  return (
    <>
      <CalendarField draft={draft} />
      {calendar !== "" && <ChoiceRadios draft={draft} name="calendar_rule" />}
      <ChoiceRadios draft={draft} name="maintenance" />
      <InstantField draft={draft} name="valid_from" />
      <InstantField draft={draft} name="valid_until" />
      <NumberField draft={draft} name="max_fires" />
      {(schedule === "cron" || schedule === "fixed_rate") && <SpanField draft={draft} name="spread_ms" />}
      <SpanField draft={draft} name="jitter_ms" />
      {schedule === "cron" && (
        <>
          <ChoiceRadios draft={draft} name="dst_gap" />
          <ChoiceRadios draft={draft} name="dst_overlap" />
        </>
      )}
    </>
  );
}
