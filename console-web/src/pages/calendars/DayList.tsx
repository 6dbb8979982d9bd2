/** The days that a calendar names, neighbours taken together. */
import { Flex, Tag } from "antd";
import { useTranslation } from "react-i18next";
import type { CalendarSpec } from "../../lib/calendar";
import { daysBetween, isOneDay, rangesOf, type DayRange } from "../../lib/days";

interface Properties {
  spec: CalendarSpec;
  /** Absent: only to look at. */
  onRemove?: (days: string[]) => void;
}

export function DayList({ spec, onRemove }: Properties) {
  const { t: own } = useTranslation("calendars");
  if (spec.excluded_days.length + spec.workdays.length === 0) return <span className="soft">{own("editor.list_none")}</span>;
  return (
    <dl className="facts day-list">
      <Entries label={own("calendars.days")} days={spec.excluded_days} onRemove={onRemove} />
      <Entries label={own("calendars.workdays")} days={spec.workdays} onRemove={onRemove} />
    </dl>
  );
}

function Entries({ label, days, onRemove }: { label: string; days: string[]; onRemove: Properties["onRemove"] }) {
  const { t } = useTranslation();
  return (
    <>
      <dt>{label}</dt>
      <dd>
        <Flex gap={4} wrap>
          {days.length === 0 && t("none")}
          {rangesOf(days).map((range) => (
            <Entry key={range.from} range={range} onRemove={onRemove} />
          ))}
        </Flex>
      </dd>
    </>
  );
}

function Entry({ range, onRemove }: { range: DayRange; onRemove: Properties["onRemove"] }) {
  const { t: own } = useTranslation("calendars");
  const { from, until, count } = range;
  const isSingle = from === until;
  const isYearly = !isOneDay(from);
  const text = isYearly ? `${from} (${own("editor.every_year")})` : isSingle ? from : `${from} – ${until} (${own("editor.days_many", { n: count })})`;
  if (onRemove === undefined) return <Tag>{text}</Tag>;
  const days = isSingle ? [from] : daysBetween(from, until);
  return (
    <Tag closable={{ "aria-label": own("editor.remove", { what: text }) }} onClose={() => onRemove(days)}>
      {text}
    </Tag>
  );
}
