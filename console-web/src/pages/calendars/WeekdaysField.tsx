import { Checkbox, Flex } from "antd";
import { useTranslation } from "react-i18next";
import { withWeekday, type CalendarSpec } from "../../lib/calendar";
import { WEEKDAYS } from "../../lib/days";

/** The weekdays that are off. */
export function WeekdaysField({ spec, onChange }: { spec: CalendarSpec; onChange: (step: (spec: CalendarSpec) => CalendarSpec) => void }) {
  const { t: own } = useTranslation("calendars");
  return (
    <Flex gap="small" wrap role="group" aria-label={own("editor.weekdays")}>
      {WEEKDAYS.map((weekday) => (
        <Checkbox
          key={weekday}
          checked={spec.excluded_weekdays.includes(weekday)}
          onChange={({ target }) => onChange((last) => withWeekday(last, weekday, target.checked))}
        >
          {own(`calendars.weekday_long.${weekday}`)}
        </Checkbox>
      ))}
    </Flex>
  );
}
