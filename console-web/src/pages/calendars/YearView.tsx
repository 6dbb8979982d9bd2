/** A year, day by day: what is a working day, and why. With `onSet` days are switched by a click. */
import { LeftOutlined, RightOutlined } from "@ant-design/icons";
import { Button, Flex } from "antd";
import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type MouseEvent } from "react";
import { useTranslation } from "react-i18next";
import { namedInYear, reader, type CalendarSpec, type DayStep } from "../../lib/calendar";
import { daysBetween, FIRST_DAY, LAST_DAY, plusDays } from "../../lib/days";
import { clusterNow } from "../../lib/now";
import { instant, viewerZone } from "../../lib/time";
import { Legend } from "./Legend";
import { Month } from "./Month";

interface Properties {
  spec: CalendarSpec;
  /** Absent: only to look at. */
  onSet?: (steps: readonly DayStep[]) => void;
}

const MONTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
const STEPS: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -7, ArrowDown: 7 };

/** The day of an event on one of the buttons. */
function dayAt(event: MouseEvent | KeyboardEvent): string | undefined {
  return event.target instanceof Element ? event.target.closest<HTMLElement>("[data-day]")?.dataset.day : undefined;
}

export function YearView({ spec, onSet }: Properties) {
  const { t: own } = useTranslation("calendars");
  const [today] = useState(() => instant(clusterNow(), viewerZone()).slice(0, 10));
  // The day that the keyboard is at: of 365 buttons one is reached by the tab key.
  const [at, setAt] = useState(today);
  const [last, setLast] = useState<{ day: string; works: boolean }>();
  const year = Number(at.slice(0, 4));
  const says = useMemo(() => reader(spec), [spec]);
  const grid = useRef<HTMLDivElement>(null);
  const moves = useRef(false);
  useEffect(() => {
    if (moves.current) grid.current?.querySelector<HTMLElement>(`[data-day="${at}"]`)?.focus();
    moves.current = false;
  }, [at]);
  const toYear = (to: number) => setAt(`${to}${at.slice(4) === "-02-29" ? "-02-28" : at.slice(4)}`);
  const onClick = (event: MouseEvent) => {
    const day = dayAt(event);
    if (day === undefined || onSet === undefined) return;
    setAt(day);
    if (event.shiftKey && last !== undefined) {
      onSet([{ days: daysBetween(last.day, day), works: last.works }]);
      return;
    }
    const works = !says(day).works;
    setLast({ day, works });
    onSet([{ days: [day], works }]);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    const day = dayAt(event);
    if (step === undefined || day === undefined) return;
    event.preventDefault();
    const next = plusDays(day, step);
    if (next < FIRST_DAY || next > LAST_DAY) return;
    moves.current = true;
    setAt(next);
  };
  const counts = namedInYear(spec, year);
  return (
    <Flex vertical gap="small">
      <Flex gap="small" align="center" wrap>
        <Button icon={<LeftOutlined aria-hidden />} aria-label={own("editor.year_before")} disabled={year <= 1970} onClick={() => toYear(year - 1)} />
        <strong className="number">{own("editor.year", { year })}</strong>
        <Button icon={<RightOutlined aria-hidden />} aria-label={own("editor.year_after")} disabled={year >= 2199} onClick={() => toYear(year + 1)} />
        <Legend />
      </Flex>
      {onSet !== undefined && <span className="soft">{own("editor.year_help")}</span>}
      {/* The days in it are buttons; what happens to them is heard here, once for all. */}
      {/* eslint-disable-next-line jsx-a11y/no-static-element-interactions */}
      <div className="year" ref={grid} onClick={onClick} onKeyDown={onKeyDown}>
        {MONTHS.map((month) => (
          <Month key={month} year={year} month={month} says={says} at={at} today={today} isFixed={onSet === undefined} />
        ))}
      </div>
      <span className="soft">{own("editor.year_counts", { year, ...counts })}</span>
    </Flex>
  );
}
