import { useTranslation } from "react-i18next";
import { excludedParts } from "../../lib/calendar";

const MARKS = [0, 6, 12, 18, 24];

/** A day from 0 to 24 h with what is left out of it. */
export function HoursBar({ ranges }: { ranges: string[] }) {
  const { t } = useTranslation();
  const { t: own } = useTranslation("calendars");
  const percent = (minutes: number) => `${(minutes / 1_440) * 100}%`;
  return (
    <div className="hours" role="img" aria-label={own("editor.hours_bar", { hours: ranges.length === 0 ? t("none") : ranges.join(", ") })}>
      <div className="hours-bar">
        {excludedParts(ranges).map(({ from, until }) => (
          <span key={`${from}-${until}`} className="hours-off" style={{ insetInlineStart: percent(from), width: percent(until - from) }} />
        ))}
      </div>
      <div className="hours-marks">
        {MARKS.map((hour) => (
          <span key={hour}>{hour}</span>
        ))}
      </div>
    </div>
  );
}
