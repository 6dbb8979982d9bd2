/** Other ways to the days of a calendar: a range, pasted text, and the list of what is named. */
import { Button, DatePicker, Flex } from "antd";
import type { Dayjs } from "dayjs";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { CalendarSpec, DayStep } from "../../lib/calendar";
import { withoutDays } from "../../lib/calendar";
import { daysBetween } from "../../lib/days";
import { DayList } from "./DayList";
import { PasteDays } from "./PasteDays";

interface Properties {
  spec: CalendarSpec;
  onSet: (steps: readonly DayStep[]) => void;
  onChange: (step: (spec: CalendarSpec) => CalendarSpec) => void;
}

export function DayTools({ spec, onSet, onChange }: Properties) {
  const { t: own } = useTranslation("calendars");
  const [range, setRange] = useState<[Dayjs | null, Dayjs | null] | null>(null);
  const [isPasting, setIsPasting] = useState(false);
  const from = range?.[0]?.format("YYYY-MM-DD");
  const until = range?.[1]?.format("YYYY-MM-DD");
  const isWhole = from !== undefined && until !== undefined;
  const take = (works: boolean) => {
    if (!isWhole) return;
    onSet([{ days: daysBetween(from, until), works }]);
    setRange(null);
  };
  return (
    <Flex vertical gap="middle" className="day-tools">
      <Flex gap="small" wrap align="center">
        <DatePicker.RangePicker aria-label={own("editor.range")} value={range} onChange={setRange} />
        <Button disabled={!isWhole} onClick={() => take(false)}>
          {own("editor.range_off")}
        </Button>
        <Button disabled={!isWhole} onClick={() => take(true)}>
          {own("editor.range_work")}
        </Button>
        <Button onClick={() => setIsPasting(true)}>{own("editor.paste")}</Button>
      </Flex>
      <DayList spec={spec} onRemove={(days) => onChange((last) => withoutDays(last, days))} />
      {isPasting && <PasteDays onTake={onSet} onClose={() => setIsPasting(false)} />}
    </Flex>
  );
}
