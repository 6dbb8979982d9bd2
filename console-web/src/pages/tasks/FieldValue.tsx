/** A value of a task's field as people read it. */
import { useTranslation } from "react-i18next";
import { CHOICES, isInstant, isSpan, type ChoiceField } from "../../lib/definition";
import { span } from "../../lib/time";
import { Moment } from "../../parts/Moment";

/** What the choices of a field are called, and what they mean. */
export type ChoiceWords = Record<string, { name: string; help: string } | undefined>;

/** The words of a field's choices. */
export function useChoiceWords(): (field: ChoiceField | "outcome") => ChoiceWords {
  const { t } = useTranslation("tasks");
  return (field) => t(`fields.choice.${field}`, { returnObjects: true });
}

function isChoiceField(field: string): field is ChoiceField {
  return Object.hasOwn(CHOICES, field);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** A parent with its outcome, or any other item of a list. */
function itemText(item: unknown, outcomes: ChoiceWords): string {
  if (typeof item !== "object" || item === null || !("task" in item)) return text(item);
  const on = "on" in item && typeof item.on === "string" ? item.on : "success";
  return `${text(item.task)} (${outcomes[on]?.name ?? on})`;
}

export function FieldValue({ field, value }: { field: string; value: unknown }) {
  const { t } = useTranslation();
  const wordsOf = useChoiceWords();
  if (value === null || value === undefined || value === "") return <span>–</span>;
  if (typeof value === "boolean") return <span>{t(value ? "yes" : "no")}</span>;
  if (isInstant(field) && typeof value === "number") return <Moment at={value} />;
  if (isSpan(field) && typeof value === "number") return <span className="number">{value === 0 ? "0" : span(value)}</span>;
  if (Array.isArray(value)) {
    const words = isChoiceField(field) ? wordsOf(field) : undefined;
    const items = value.map((item: unknown) => (typeof item === "string" ? words?.[item]?.name : undefined) ?? itemText(item, wordsOf("outcome")));
    return <span>{items.length === 0 ? "–" : items.join(", ")}</span>;
  }
  if (isChoiceField(field) && typeof value === "string") return <span title={value}>{wordsOf(field)[value]?.name ?? value}</span>;
  return <span className={field === "cron" || field === "params" ? "mono field-text" : "field-text"}>{text(value)}</span>;
}
