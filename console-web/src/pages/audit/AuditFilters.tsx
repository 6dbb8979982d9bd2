/** The filters of the audit; all of them stand in the address. */
import { Button, DatePicker, Flex, Input, Select } from "antd";
import dayjs from "dayjs";
import { useTranslation } from "react-i18next";
import { $api } from "../../api/client";
import { AUDIT_FILTERS, ONLY_PLATFORM } from "../../lib/auditFilters";
import { useFilters } from "../../lib/search";
import { useTenant } from "../../lib/tenant";
import { UserChoice } from "../../parts/UserChoice";
import { ACTIONS, KINDS, useAuditWords } from "./words";

interface ChoiceProperties {
  label: string;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
  options: { value: string; label: string }[];
}

/** A value that is not among the options, of a newer node say, is one all the same. */
function Choice({ label, value, onChange, options }: ChoiceProperties) {
  const isKnown = value === undefined || options.some((option) => option.value === value);
  return (
    <Select
      aria-label={label}
      placeholder={label}
      className="filter"
      allowClear
      showSearch={{ optionFilterProp: "label" }}
      value={value}
      onChange={(chosen: string | undefined) => onChange(chosen)}
      options={isKnown ? options : [...options, { value, label: value }]}
    />
  );
}

function Scope({ value, onChange }: Pick<ChoiceProperties, "value" | "onChange">) {
  const { t } = useTranslation("audit");
  const { data } = $api.useQuery("get", "/audit/chains", { params: { query: { limit: 500 } } });
  const gone = (data?.items ?? []).flatMap(({ tenant, tenant_id }) => (tenant == null && tenant_id != null ? [tenant_id] : []));
  const options = [{ value: ONLY_PLATFORM, label: t("scope_platform") }, ...gone.map((id) => ({ value: id, label: t("scope_deleted", { id }) }))];
  return <Choice label={t("scope")} value={value} onChange={onChange} options={options} />;
}

function Range({ from, until, onChange }: { from: string | undefined; until: string | undefined; onChange: (from?: string, until?: string) => void }) {
  const { t } = useTranslation("audit");
  const moment = (text: string | undefined) => (text === undefined ? null : dayjs(Number(text)));
  return (
    <DatePicker.RangePicker
      aria-label={t("range")}
      placeholder={[t("from"), t("until")]}
      showTime={{ format: "HH:mm" }}
      format="YYYY-MM-DD HH:mm"
      allowEmpty
      value={[moment(from), moment(until)]}
      onChange={(range) => onChange(range?.[0]?.valueOf().toString(), range?.[1]?.valueOf().toString())}
    />
  );
}

export function AuditFilters() {
  const { t } = useTranslation("audit");
  const common = useTranslation();
  const { tenant } = useTenant();
  const words = useAuditWords();
  const { filters, set, clear, isFiltered } = useFilters(AUDIT_FILTERS);
  return (
    <Flex gap="small" wrap role="search" aria-label={common.t("filters")}>
      {tenant === undefined && <Scope value={filters.scope} onChange={(scope) => set({ scope })} />}
      <UserChoice label={t("actor")} value={filters.actor} onChange={(actor) => set({ actor })} />
      <Choice label={t("action")} value={filters.action} onChange={(action) => set({ action })} options={ACTIONS.map((value) => ({ value, label: words.action(value) }))} />
      <Choice label={t("kind")} value={filters.kind} onChange={(kind) => set({ kind })} options={KINDS.map((value) => ({ value, label: words.kind(value) }))} />
      <Input.Search
        key={filters.target ?? ""}
        className="filter"
        aria-label={t("target_id")}
        placeholder={t("target_id")}
        allowClear
        defaultValue={filters.target}
        onSearch={(target) => set({ target: target.trim() })}
      />
      <Range from={filters.from} until={filters.until} onChange={(from, until) => set({ from, until })} />
      {isFiltered && <Button onClick={clear}>{common.t("clear_filters")}</Button>}
    </Flex>
  );
}
