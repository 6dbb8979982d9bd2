/** The choices of a built schedule. */
import { Checkbox, Flex, Form, Input, InputNumber, Select } from "antd";
import { useTranslation } from "react-i18next";
import { COUNTS, type Built, type MonthDay, type TimeOfDay, type Unit } from "../../lib/cronBuilder";

const UNITS = ["second", "minute", "hour"] as const satisfies readonly Unit[];

/** Monday first. */
const DAYS = [2, 3, 4, 5, 6, 7, 1] as const;
const NTHS = [1, 2, 3, 4, 5, 0] as const;

interface Properties<Kind extends Built> {
  built: Kind;
  onChange: (built: Built) => void;
}

export function BuilderFields({ built, onChange }: Properties<Built>) {
  switch (built.kind) {
    case "every":
      return <Every built={built} onChange={onChange} />;
    case "daily":
      return <TimeField time={built.time} onChange={(time) => onChange({ ...built, time })} />;
    case "weekly":
      return <Weekly built={built} onChange={onChange} />;
    case "monthly":
      return <Monthly built={built} onChange={onChange} />;
  }
}

function Every({ built, onChange }: Properties<Extract<Built, { kind: "every" }>>) {
  const { t } = useTranslation("schedule");
  const change = (unit: Unit) => onChange({ ...built, unit, count: COUNTS[unit].includes(built.count) ? built.count : 1 });
  return (
    <Form.Item label={t("builder.every")} htmlFor="every-count">
      <Flex gap="small">
        <Select id="every-count" value={built.count} options={COUNTS[built.unit].map((value) => ({ value, label: String(value) }))} onChange={(count: number) => onChange({ ...built, count })} className="short-select" />
        <Select aria-label={t("builder.unit")} value={built.unit} options={UNITS.map((value) => ({ value, label: t(`builder.${value}`) }))} onChange={change} className="short-select" />
      </Flex>
    </Form.Item>
  );
}

const two = (value: number) => String(value).padStart(2, "0");

function TimeField({ time, onChange }: { time: TimeOfDay; onChange: (time: TimeOfDay) => void }) {
  const { t } = useTranslation("schedule");
  const take = (text: string) => {
    const [hour, minute, second = 0] = text.split(":").map(Number);
    // An emptied field keeps the last time.
    if (hour !== undefined && minute !== undefined && text !== "") onChange({ hour, minute, second });
  };
  return (
    <Form.Item label={t("builder.time")} htmlFor="time-of-day">
      <Input id="time-of-day" type="time" step={1} value={`${two(time.hour)}:${two(time.minute)}:${two(time.second)}`} onChange={(event) => take(event.target.value)} className="time-input" />
    </Form.Item>
  );
}

function Weekly({ built, onChange }: Properties<Extract<Built, { kind: "weekly" }>>) {
  const { t } = useTranslation("schedule");
  const toggle = (day: number, isOn: boolean) => {
    const weekdays = built.weekdays.filter((each) => each !== day).concat(isOn ? [day] : []);
    // A week without days is no schedule.
    if (weekdays.length > 0) onChange({ ...built, weekdays });
  };
  return (
    <>
      <Form.Item label={t("builder.weekdays")}>
        <Flex gap="small" wrap role="group" aria-label={t("builder.weekdays")}>
          {DAYS.map((day) => (
            <Checkbox key={day} checked={built.weekdays.includes(day)} onChange={(event) => toggle(day, event.target.checked)}>
              {t(`weekday.d${day}`)}
            </Checkbox>
          ))}
        </Flex>
      </Form.Item>
      <TimeField time={built.time} onChange={(time) => onChange({ ...built, time })} />
    </>
  );
}

const FIRST_ON: Record<MonthDay["is"], MonthDay> = { day: { is: "day", day: 1 }, last: { is: "last" }, nth: { is: "nth", nth: 1, weekday: 2 } };

function Monthly({ built, onChange }: Properties<Extract<Built, { kind: "monthly" }>>) {
  const { t } = useTranslation("schedule");
  const { on } = built;
  const change = (changed: MonthDay) => onChange({ ...built, on: changed });
  return (
    <>
      <Form.Item label={t("builder.on")} htmlFor="month-on" extra={on.is === "day" && on.day > 28 ? t("builder.short_months") : undefined}>
        <Flex gap="small" wrap>
          <Select
            id="month-on"
            value={on.is}
            options={(["day", "last", "nth"] as const).map((value) => ({ value, label: t(`builder.on_${value}`) }))}
            onChange={(is) => change(FIRST_ON[is])}
            className="month-select"
          />
          {on.is === "day" && <InputNumber aria-label={t("builder.day")} min={1} max={31} precision={0} value={on.day} onChange={(day) => change({ is: "day", day: day ?? 1 })} />}
          {on.is === "nth" && (
            <>
              <Select aria-label={t("builder.nth")} value={on.nth} options={NTHS.map((value) => ({ value, label: t(`builder.nth_names.n${value}`) }))} onChange={(nth: number) => change({ ...on, nth })} className="short-select" />
              <Select aria-label={t("builder.weekday")} value={on.weekday} options={DAYS.map((value) => ({ value, label: t(`weekday.d${value}`) }))} onChange={(weekday: number) => change({ ...on, weekday })} className="month-select" />
            </>
          )}
        </Flex>
      </Form.Item>
      <TimeField time={built.time} onChange={(time) => onChange({ ...built, time })} />
    </>
  );
}
