import { useTranslation } from "react-i18next";
import type { DayState } from "../../lib/calendar";
import { daysOfMonth, WEEKDAYS, weekdayIndex } from "../../lib/days";

interface Properties {
  year: number;
  /** 1 to 12. */
  month: number;
  says: (day: string) => DayState;
  /** The day that the keyboard is at. */
  at: string;
  today: string;
  /** Only to look at. */
  isFixed: boolean;
}

/** One month, a button for each day; clicks and keys are heard by the year around it. */
export function Month({ year, month, says, at, today, isFixed }: Properties) {
  const { t: own, i18n } = useTranslation("calendars");
  const days = daysOfMonth(year, month);
  const name = new Intl.DateTimeFormat(i18n.language, { month: "long", timeZone: "UTC" }).format(new Date(Date.UTC(year, month - 1, 1)));
  const first = days[0];
  return (
    <div className="month" role="group" aria-label={`${name} ${year}`}>
      <div className="month-name" aria-hidden>
        {name}
      </div>
      {WEEKDAYS.map((weekday) => (
        <span key={weekday} className="month-weekday" aria-hidden>
          {own(`calendars.weekday.${weekday}`)}
        </span>
      ))}
      {days.map((day) => (
        <Day
          key={day}
          day={day}
          state={says(day)}
          column={day === first ? weekdayIndex(day) + 1 : undefined}
          isAt={day === at}
          isToday={day === today}
          isFixed={isFixed}
        />
      ))}
    </div>
  );
}

interface DayProperties {
  day: string;
  state: DayState;
  column: number | undefined;
  isAt: boolean;
  isToday: boolean;
  isFixed: boolean;
}

function Day({ day, state, column, isAt, isToday, isFixed }: DayProperties) {
  const { t: own } = useTranslation("calendars");
  const { works, reason } = state;
  const isNamed = reason !== "plain" && reason !== "weekday";
  const number = Number(day.slice(8));
  const label = `${day}, ${own(`editor.legend.${reason}`)}`;
  return (
    <button
      type="button"
      data-day={day}
      className={`day day-${reason}${isToday ? " day-today" : ""}`}
      style={column === undefined ? undefined : { gridColumnStart: column }}
      tabIndex={isAt ? 0 : -1}
      // Voice control users say what is shown.
      aria-label={`${number}: ${label}`}
      aria-pressed={isFixed ? undefined : !works}
      aria-disabled={isFixed}
      title={label}
    >
      {number}
      {isNamed && <sup aria-hidden>{own(works ? "editor.mark.works" : "editor.mark.off")}</sup>}
    </button>
  );
}
