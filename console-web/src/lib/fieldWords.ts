/** What the node says is wrong with a field, in the viewer's language. The node says it in English. */
import i18next from "i18next";
import type { Problem } from "../api/client";
import { refusedFieldZh } from "../i18n/zh/refusedFields";

/** What has no words here is shown as the node says it. */
export function fieldWords(message: string): string {
  return (i18next.language === "zh" ? refusedFieldZh(message) : undefined) ?? message;
}

/** What stood in the way. Where the node names fields, their messages say more than the sum of them. */
export function detailOf({ errors, detail }: Problem): string {
  return errors.length > 0 ? errors.map(({ field, message }) => `${field}: ${fieldWords(message)}`).join("\n") : detail;
}
