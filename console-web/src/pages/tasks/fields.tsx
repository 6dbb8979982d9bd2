/** The fields of the editor: each with its label, what it is for, and what the node said about it. */
import { Checkbox, Flex, Form, Input, InputNumber, Radio, Select, Typography } from "antd";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import en from "../../i18n/en/fields";
import { CHOICES, RANGES, type ChoiceField, type Field } from "../../lib/definition";
import { useFieldLabel } from "./Changes";
import type { Draft, FieldOf } from "./draft";
import { DurationInput } from "./DurationInput";
import { errorOf } from "./errorOf";
import { useChoiceWords } from "./FieldValue";
import { InstantInput } from "./InstantInput";

type Helped = keyof typeof en.help;

function hasHelp(name: string): name is Helped {
  return Object.hasOwn(en.help, name);
}

/** Id of a field's control. */
export function idOf(name: string): string {
  return `task-${name}`;
}

interface Of<Name extends Field> {
  draft: Draft;
  name: Name;
}

/** The frame of every field. */
export function Labelled({ draft, name, required = false, isGroup = false, children }: Of<Field> & { required?: boolean; isGroup?: boolean; children: ReactNode }) {
  const { t } = useTranslation("tasks");
  const labelOf = useFieldLabel();
  return (
    <Form.Item
      label={labelOf(name)}
      // A group names itself.
      htmlFor={isGroup ? undefined : idOf(name)}
      required={required}
      extra={hasHelp(name) ? t(`fields.help.${name}`) : undefined}
      {...errorOf(draft.errors, name)}
    >
      {children}
    </Form.Item>
  );
}

export function TextField({ draft, name, required = false, rows, mono = false }: Of<FieldOf<string>> & { required?: boolean; rows?: number; mono?: boolean }) {
  const shared = { id: idOf(name), value: draft.values[name], className: mono ? "mono" : undefined, spellCheck: !mono };
  return (
    <Labelled draft={draft} name={name} required={required}>
      {rows === undefined ? (
        <Input {...shared} onChange={(event) => draft.set(name, event.target.value)} />
      ) : (
        <Input.TextArea {...shared} className="grows" rows={rows} onChange={(event) => draft.set(name, event.target.value)} />
      )}
    </Labelled>
  );
}

export function NumberField({ draft, name }: Of<FieldOf<number>>) {
  const { min, max } = RANGES[name] ?? { min: 0 };
  return (
    <Labelled draft={draft} name={name}>
      <InputNumber id={idOf(name)} min={min} max={max} precision={0} value={draft.values[name]} onChange={(value) => draft.set(name, value ?? min)} />
    </Labelled>
  );
}

export function SpanField({ draft, name }: Of<FieldOf<number>>) {
  const labelOf = useFieldLabel();
  return (
    <Labelled draft={draft} name={name}>
      <DurationInput id={idOf(name)} label={labelOf(name)} value={draft.values[name]} onChange={(ms) => draft.set(name, ms)} />
    </Labelled>
  );
}

/** An instant, by the clock of the task's zone. */
export function InstantField({ draft, name }: Of<FieldOf<number>>) {
  return (
    <Labelled draft={draft} name={name}>
      <InstantInput id={idOf(name)} value={draft.values[name]} zone={draft.values.time_zone} onChange={(at) => draft.set(name, at)} />
    </Labelled>
  );
}

export function YesNoField({ draft, name }: Of<FieldOf<boolean>>) {
  const { t } = useTranslation("tasks");
  return (
    <Form.Item extra={hasHelp(name) ? t(`fields.help.${name}`) : undefined} {...errorOf(draft.errors, name)}>
      <Checkbox checked={draft.values[name]} onChange={(event) => draft.set(name, event.target.checked)}>
        {t(`fields.label.${name}`)}
      </Checkbox>
    </Form.Item>
  );
}

export function TagsField({ draft, name }: Of<"tags" | "tags_any" | "tags_none">) {
  return (
    <Labelled draft={draft} name={name}>
      <Select id={idOf(name)} mode="tags" open={false} suffix={null} value={draft.values[name]} onChange={(tags: string[]) => draft.set(name, tags)} tokenSeparators={[","]} />
    </Labelled>
  );
}

/** A choice whose value is one of its words. */
type OneOf = Exclude<ChoiceField, "retry_on">;

/** Every choice says what it means, where it is made. */
export function ChoiceRadios<Name extends OneOf>({ draft, name }: Of<Name>) {
  const words = useChoiceWords()(name);
  const labelOf = useFieldLabel();
  return (
    <Labelled draft={draft} name={name} isGroup>
      <Radio.Group value={draft.values[name]} aria-label={labelOf(name)}>
        <Flex vertical gap={4}>
          {CHOICES[name].map((value) => (
            <Radio key={value} value={value} onChange={() => draft.choose(name, value)}>
              {words[value]?.name} <Typography.Text type="secondary">– {words[value]?.help}</Typography.Text>
            </Radio>
          ))}
        </Flex>
      </Radio.Group>
    </Labelled>
  );
}

/** The same for long lists. */
export function ChoiceSelect({ draft, name }: Of<OneOf>) {
  const words = useChoiceWords()(name);
  const values: readonly (typeof CHOICES)[OneOf][number][] = CHOICES[name];
  return (
    <Labelled draft={draft} name={name}>
      <Select
        id={idOf(name)}
        value={draft.values[name]}
        onChange={(value) => draft.choose(name, value)}
        options={values.map((value) => ({ value, label: words[value]?.name ?? value }))}
        optionRender={({ value }) => (
          <div className="choice">
            <div>{words[String(value)]?.name}</div>
            <div className="soft choice-help">{words[String(value)]?.help}</div>
          </div>
        )}
        className="wide-select"
      />
      <div className="soft">{words[draft.values[name]]?.help}</div>
    </Labelled>
  );
}
