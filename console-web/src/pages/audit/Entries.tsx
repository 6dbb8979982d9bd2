/** The entries of the audit, newest first; each unfolds. */
import { Collapse, Flex, type TableProps } from "antd";
import { useTranslation } from "react-i18next";
import { $api, type Schema } from "../../api/client";
import { auditQuery, AUDIT_FILTERS } from "../../lib/auditFilters";
import { useFilters } from "../../lib/search";
import { useTenant } from "../../lib/tenant";
import { FilterFold } from "../../parts/FilterFold";
import { BY_BEFORE, List } from "../../parts/List";
import { Moment } from "../../parts/Moment";
import { AuditFilters } from "./AuditFilters";
import { Entry } from "./Entry";
import { TargetLink } from "./TargetLink";
import { useAuditWords } from "./words";

type AuditEntry = Schema<"AuditEntry">;

export function Entries() {
  const { t } = useTranslation("audit");
  const { tenant } = useTenant();
  const words = useAuditWords();
  const { filters, clear, isFiltered } = useFilters(AUDIT_FILTERS);
  const query = { limit: 100, ...auditQuery(filters, tenant) };
  const pages = $api.useInfiniteQuery("get", "/audit", { params: { query } }, BY_BEFORE);
  const columns: NonNullable<TableProps<AuditEntry>["columns"]> = [
    { title: t("at"), key: "at", width: 170, render: (_, { at }) => <Moment at={at} /> },
    { title: t("who"), key: "who", width: 130, ellipsis: true, render: (_, { actor }) => <span title={actor}>{actor}</span> },
    { title: t("action"), key: "action", width: 210, render: (_, { action }) => words.action(action) },
    { title: t("target"), key: "target", width: 270, render: (_, entry) => <TargetLink entry={entry} /> },
    { title: t("address"), key: "address", width: 150, ellipsis: true, render: (_, { address }) => <span className="mono">{address}</span> },
  ];
  return (
    <>
      <FilterFold count={Object.keys(filters).length} clear={clear}>
        <AuditFilters />
      </FilterFold>
      <List<AuditEntry>
        label={t("entries")}
        pages={pages}
        isFiltered={isFiltered}
        rowKey={({ id }) => id}
        columns={columns}
        whenEmpty={t("empty")}
        expandable={{ expandedRowRender: (entry) => <Entry entry={entry} />, columnTitle: <span className="unseen">{t("unfold")}</span> }}
        card={(entry) => (
          <Flex vertical gap="small">
            <Moment at={entry.at} />
            <span>
              <strong>{entry.actor}</strong> {words.action(entry.action)}
            </span>
            <TargetLink entry={entry} />
            <Collapse size="small" ghost destroyOnHidden items={[{ key: "entry", label: t("details"), children: <Entry entry={entry} /> }]} />
          </Flex>
        )}
      />
    </>
  );
}
