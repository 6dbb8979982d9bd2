/** What the node refuses, in the viewer's language, by its codes. The node says it in English. */
import i18next from "i18next";
import type { FieldError, Problem } from "../api/client";
import type * as Words from "./zh/refusals";

/** The words in Chinese, once that is spoken. */
let zh: typeof Words | undefined;

/** From now on these are said where Chinese is spoken. */
export function sayInChinese(words: typeof Words): void {
  zh = words;
}

/** The words for a code; of one that only a newer node knows, nothing. */
function zhOf(list: keyof typeof Words, code: string | undefined, params: object | undefined): string | undefined {
  if (i18next.language !== "zh" || zh === undefined || code === undefined) return undefined;
  const say = (zh[list] as Record<string, ((params: object) => string) | undefined>)[code];
  return say?.(params ?? {});
}

/** What is wrong with a field. */
export function fieldWords({ code, params, message, entry }: FieldError): string {
  const words = zhOf("FIELDS", code, params);
  return words === undefined ? message : entry === undefined ? words : `${entry}：${words}`;
}

/** What stood in the way. Where the node names fields, their messages say more than the sum of them. */
export function detailOf({ errors, code, params, detail }: Problem): string {
  if (errors.length > 0) return errors.map((error) => `${error.field}: ${fieldWords(error)}`).join("\n");
  return zhOf("PROBLEMS", code, params) ?? detail;
}
