import { Flex } from "antd";
import { useTranslation } from "react-i18next";
import type { DayReason } from "../../lib/calendar";

const REASONS: readonly DayReason[] = ["plain", "weekday", "excluded", "excluded_yearly", "workday", "workday_yearly"];

/** What the grounds of the days mean. */
export function Legend() {
  const { t: own } = useTranslation("calendars");
  return (
    <Flex gap="small" wrap component="ul" className="day-legend">
      {REASONS.map((reason) => (
        <li key={reason} className={`legend-item day-${reason}`}>
          {own(`editor.legend.${reason}`)}
          {reason.startsWith("excluded") && <sup>{own("editor.mark.off")}</sup>}
          {reason.startsWith("workday") && <sup>{own("editor.mark.works")}</sup>}
        </li>
      ))}
    </Flex>
  );
}
