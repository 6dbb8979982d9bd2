/** The hours of a day at which nothing fires. */
import { Button, Flex, Input, Space, Tag } from "antd";
import { useState, type KeyboardEvent } from "react";
import { useTranslation } from "react-i18next";
import { hoursOf, readHours, type CalendarSpec } from "../../lib/calendar";
import { HoursBar } from "./HoursBar";

export function HoursField({ spec, onChange }: { spec: CalendarSpec; onChange: (step: (spec: CalendarSpec) => CalendarSpec) => void }) {
  const { t: own } = useTranslation("calendars");
  const [text, setText] = useState("");
  const [wrong, setWrong] = useState<string>();
  const add = () => {
    const ranges = readHours(text);
    const refused = ranges.find((range) => hoursOf(range) === undefined);
    setWrong(refused);
    if (refused !== undefined || ranges.length === 0) return;
    setText("");
    onChange((last) => ({ ...last, excluded_hours: [...new Set([...last.excluded_hours, ...ranges])] }));
  };
  const onEnter = (event: KeyboardEvent) => {
    // Adds to the list; it does not save the calendar.
    event.preventDefault();
    add();
  };
  const remove = (range: string) => onChange((last) => ({ ...last, excluded_hours: last.excluded_hours.filter((each) => each !== range) }));
  return (
    <Flex vertical gap="small" align="start">
      {spec.excluded_hours.length > 0 && (
        <Flex gap={4} wrap>
          {spec.excluded_hours.map((range) => (
            <Tag key={range} closable={{ "aria-label": own("editor.remove", { what: range }) }} onClose={() => remove(range)}>
              {range}
            </Tag>
          ))}
        </Flex>
      )}
      <HoursBar ranges={spec.excluded_hours} />
      <Space.Compact>
        <Input
          aria-label={own("editor.hours")}
          placeholder={own("editor.hours_example")}
          value={text}
          status={wrong === undefined ? undefined : "error"}
          onChange={(event) => setText(event.target.value)}
          onPressEnter={onEnter}
        />
        <Button onClick={add}>{own("editor.hours_add")}</Button>
      </Space.Compact>
      {wrong !== undefined && (
        <span className="wrong" role="alert">
          {own("editor.hours_wrong", { text: wrong })}
        </span>
      )}
    </Flex>
  );
}
