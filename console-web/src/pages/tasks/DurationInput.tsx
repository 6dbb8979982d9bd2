/** A span, typed as a number and a unit; its value is in ms. */
import { InputNumber, Select, Space } from "antd";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { amountOf, isUnit, msOf, UNITS, type Unit } from "../../lib/duration";

interface Properties {
  id?: string;
  /** Says what it is, where no label of a form does. */
  label?: string;
  value?: number;
  onChange?: (ms: number) => void;
  /** Unit of an empty field. */
  unit?: Unit;
  disabled?: boolean;
}

export function DurationInput({ id, label, value = 0, onChange, unit = "s", disabled = false }: Properties) {
  const { t } = useTranslation("tasks");
  // What was typed stays as it was typed: 90 s do not become 1.5 min under one's fingers.
  const [typed, setTyped] = useState<{ count: number | null; unit: Unit; ms: number }>();
  const amount = typed?.ms === value ? typed : amountOf(value, unit);
  const change = (count: number | null, chosen: Unit) => {
    const ms = msOf({ count: count ?? 0, unit: chosen });
    setTyped({ count, unit: chosen, ms });
    onChange?.(ms);
  };
  return (
    <Space.Compact>
      <InputNumber
        id={id}
        aria-label={label}
        min={0}
        value={amount.count}
        disabled={disabled}
        onChange={(count) => change(count, amount.unit)}
        className="duration-count"
      />
      <Select
        aria-label={label === undefined ? t("unit") : t("unit_of", { name: label })}
        value={amount.unit}
        disabled={disabled}
        onChange={(chosen: string) => isUnit(chosen) && change(amount.count, chosen)}
        options={UNITS.map((each) => ({ value: each, label: t(`units.${each}`) }))}
        className="duration-unit"
      />
    </Space.Compact>
  );
}
