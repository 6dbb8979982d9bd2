/** What the node said about a field, for the `Form.Item` that shows it. */
import type { FormItemProps } from "antd";
import type { FieldError } from "../../api/client";
import { fieldWords } from "../../i18n/fieldWords";

/** All lines that name the field, or a place in its list (`tags[3]`). */
export function errorOf(errors: readonly FieldError[], field: string): Pick<FormItemProps, "validateStatus" | "help"> {
  const messages = errors.filter((error) => error.field === field || error.field.startsWith(`${field}[`)).map(fieldWords);
  return messages.length === 0 ? {} : { validateStatus: "error", help: messages.join(" ") };
}
