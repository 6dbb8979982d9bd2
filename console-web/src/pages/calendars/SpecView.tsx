/** A calendar to look at. */
import { Card, Flex } from "antd";
import { useTranslation } from "react-i18next";
import type { CalendarSpec } from "../../lib/calendar";
import { WEEKDAYS } from "../../lib/days";
import { DayList } from "./DayList";
import { HoursBar } from "./HoursBar";
import { YearView } from "./YearView";

export function SpecView({ spec }: { spec: CalendarSpec }) {
  const { t } = useTranslation();
  const { t: own } = useTranslation("calendars");
  const weekdays = WEEKDAYS.filter((weekday) => spec.excluded_weekdays.includes(weekday)).map((weekday) => own(`calendars.weekday_long.${weekday}`));
  return (
    <Flex vertical gap="middle">
      <Card size="small">
        <dl className="facts">
          <dt>{t("description")}</dt>
          <dd>{spec.description === "" ? "–" : spec.description}</dd>
          <dt>{own("editor.weekdays")}</dt>
          <dd>{weekdays.length === 0 ? t("none") : weekdays.join(", ")}</dd>
          <dt>{own("editor.hours")}</dt>
          <dd>
            {spec.excluded_hours.length === 0 ? t("none") : spec.excluded_hours.join(", ")}
            <HoursBar ranges={spec.excluded_hours} />
          </dd>
        </dl>
      </Card>
      <Card size="small" title={<h2 className="card-title">{own("editor.year_view")}</h2>}>
        <YearView spec={spec} />
        <DayList spec={spec} />
      </Card>
    </Flex>
  );
}
