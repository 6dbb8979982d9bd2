import { Flex, type TableProps } from "antd";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { $api, type Schema } from "../../api/client";
import { WEEKDAYS } from "../../lib/days";
import { useLink } from "../../lib/tenant";
import { BY_AFTER, List } from "../../parts/List";
import { Moment } from "../../parts/Moment";

type Calendar = Schema<"CalendarVersion">;

/** The calendars of a tenant, by name. */
export function CalendarList({ tenant }: { tenant: string }) {
  const { t } = useTranslation();
  const { t: own } = useTranslation("calendars");
  const link = useLink();
  const pages = $api.useInfiniteQuery("get", "/calendars/{tenant}", { params: { path: { tenant } } }, BY_AFTER);
  const name = (calendar: Calendar) => <Link to={link("/calendars", { calendar: calendar.name })}>{calendar.name}</Link>;
  const off = ({ excluded_weekdays }: Calendar) => {
    const words = WEEKDAYS.filter((weekday) => excluded_weekdays.includes(weekday)).map((weekday) => own(`calendars.weekday_long.${weekday}`));
    return words.length === 0 ? t("none") : words.join(", ");
  };
  const hours = ({ excluded_hours }: Calendar) => (excluded_hours.length === 0 ? t("none") : excluded_hours.join(", "));
  const columns: TableProps<Calendar>["columns"] = [
    { title: t("name"), key: "name", width: 200, render: (_, calendar) => name(calendar) },
    { title: t("description"), dataIndex: "description", width: 240, ellipsis: true },
    { title: own("calendars.weekdays"), key: "weekdays", width: 180, render: (_, calendar) => off(calendar) },
    { title: own("calendars.days"), key: "days", width: 90, className: "number", render: (_, calendar) => calendar.excluded_days.length },
    { title: own("calendars.workdays"), key: "workdays", width: 130, className: "number", render: (_, calendar) => calendar.workdays.length },
    { title: own("calendars.hours"), key: "hours", width: 160, render: (_, calendar) => hours(calendar) },
    { title: own("calendars.version"), dataIndex: "version", width: 80, className: "number" },
    { title: t("updated_at"), key: "updated", width: 160, render: (_, calendar) => <Moment at={calendar.updated_at} exactness="minute" /> },
  ];
  return (
    <List<Calendar>
      label={t("pages.calendars")}
      pages={pages}
      rowKey={(calendar) => calendar.name}
      columns={columns}
      whenEmpty={<p>{own("calendars.empty")}</p>}
      card={(calendar) => (
        <Flex vertical gap={4}>
          {name(calendar)}
          {calendar.description !== "" && <span>{calendar.description}</span>}
          <span>{`${own("calendars.weekdays")}: ${off(calendar)}`}</span>
          <span>{`${own("calendars.days")}: ${calendar.excluded_days.length}, ${own("calendars.workdays")}: ${calendar.workdays.length}`}</span>
          <span>{`${own("calendars.hours")}: ${hours(calendar)}`}</span>
        </Flex>
      )}
    />
  );
}
